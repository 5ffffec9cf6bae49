"""The library of the kernel's RTL, built once from the sources as they are, and kernels of it."""

from __future__ import annotations

import contextlib

import pytest

from hillinfer.csd.rtl import Kernel, Library
from tests.rtl_device.build import rtl_library


@pytest.fixture(scope="session")
def library():
    return Library(rtl_library())


@pytest.fixture
def kernel(library):
    with contextlib.closing(Kernel(library)) as opened:
        yield opened
