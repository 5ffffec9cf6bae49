"""Which xclbin a card is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from hillinfer.csd.images import VARIABLE, find_image
from hillinfer.errors import DeviceError


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("XCL_EMULATION_MODE", raising=False)


def touch(path: Path) -> Path:
    path.touch()
    return path


def test_the_named_one_comes_first(tmp_path, monkeypatch):
    named, other = touch(tmp_path / "named.xclbin"), touch(tmp_path / "other.xclbin")
    monkeypatch.setenv(VARIABLE, str(other))
    assert find_image(named) == named
    assert find_image(None) == other


def test_bitstreams_have_one_for_what_runs_here(tmp_path, monkeypatch):
    card = touch(tmp_path / "qk_score.hw.u2.300MHz.xclbin")
    emulated = touch(tmp_path / "qk_score.hw_emu.u2.300MHz.xclbin")
    assert find_image(None, tmp_path) == card
    monkeypatch.setenv("XCL_EMULATION_MODE", "hw_emu")
    assert find_image(None, tmp_path) == emulated


def test_none_several_and_missing_ones_are_errors(tmp_path, monkeypatch):
    with pytest.raises(DeviceError, match="make xclbin"):
        find_image(None, tmp_path)
    touch(tmp_path / "qk_score.hw.u2.300MHz.xclbin")
    touch(tmp_path / "qk_score.hw.u2.200MHz.xclbin")
    with pytest.raises(DeviceError, match="several"):
        find_image(None, tmp_path)
    with pytest.raises(DeviceError, match="--xclbin"):
        find_image(tmp_path / "gone.xclbin", tmp_path)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with pytest.raises(DeviceError, match=VARIABLE):
        find_image(None, tmp_path)
