"""The kernel's library, built once per run from the sources as they are."""

from __future__ import annotations

import pytest

from hillinfer.csd.native import Library
from tests.hls import builds


@pytest.fixture(scope="session")
def library():
    return Library(builds.native_library())
