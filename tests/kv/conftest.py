"""Native code by one instruction set or another."""

import pytest

from hillinfer import _native


@pytest.fixture
def use_variant():
    """Switches the instruction set; the usual one is back after the test."""
    usual = _native.variant()
    yield _native.use_variant
    _native.use_variant(usual)
