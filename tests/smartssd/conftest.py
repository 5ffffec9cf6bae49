"""A box as the set-up would find it at each stage: files that the doctor's tests make, and a repository of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.doctor.box import Box


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """Ubuntu 20.04 with kernel 5.4 and nothing else."""
    box = Box(tmp_path / "machine", {"PATH": str(tmp_path / "bin")})
    box.write("etc/os-release", 'NAME="Ubuntu"\nVERSION_ID="20.04"\nID=ubuntu\n')
    box.write("proc/sys/kernel/osrelease", "5.4.0-164-generic\n")
    return box


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """What was downloaded: empty files of the right names."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in (
        "xrt_202210.2.13.466_20.04-amd64-xrt.deb",
        "xilinx-u2-gen3x4-xdma-gc-base_2-3311104_all.deb",
        "xilinx-u2-gen3x4-xdma-gc-validate_2-3311104_all.deb",
    ):
        (folder / name).touch()
    return folder
