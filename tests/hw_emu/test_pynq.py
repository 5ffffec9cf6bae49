"""The pynq board: what is said where PYNQ is missing or another one, and its tests in PYNQ's own environment."""

from __future__ import annotations

import sys
from importlib import metadata

import pytest

from hillinfer.csd.boards import pynq_card
from hillinfer.errors import DeviceError
from scripts.hw_emu import environment
from tests.hw_emu.emulation import needs_xrt, pytest_inside


@pytest.mark.parametrize(("found", "told"), [("4.0.0", "PYNQ 4.0.0 is installed"), (None, "PYNQ is not installed")])
def test_another_pynq_or_none_is_told_what_to_install(found, told, monkeypatch):
    def version(_):
        if found is None:
            raise metadata.PackageNotFoundError("pynq")
        return found

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(DeviceError, match=f'{told}.*pip install "pynq==3.0.1" "numpy<2" "pycparser<2.23"'):
        pynq_card.check_version()


@needs_xrt
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="PYNQ 3.0.1 needs numpy 1, which Python 3.13 has not")
def test_on_emulated_cards():
    assert pytest_inside("tests/emulated/test_pynq.py", cards=2, python=environment.pynq_python()) == 0
