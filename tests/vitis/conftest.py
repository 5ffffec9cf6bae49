"""A machine to build on, for tests that run AMD's tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vitis.stand_ins import Vitis


@pytest.fixture
def vitis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Vitis:
    """A machine without any of AMD's tools, on which a test installs what it needs."""
    machine = Vitis(tmp_path / "machine")
    (machine.folder / "bin").mkdir(parents=True)
    monkeypatch.setenv("PATH", f"{machine.folder / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("PLATFORM_REPO_PATHS", str(machine.folder / "platforms"))
    monkeypatch.delenv("XILINX_VITIS", raising=False)
    return machine
