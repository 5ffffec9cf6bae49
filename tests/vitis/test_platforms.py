"""Looking up a platform by name or by path, and what is said when it is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.vitis import platforms
from scripts.vitis.errors import VitisError
from scripts.vitis.platforms import SMARTSSD
from tests.vitis.stand_ins import Vitis


def test_found_by_name_and_by_path(vitis: Vitis) -> None:
    file = vitis.install_platform()
    assert platforms.find(SMARTSSD) == file
    assert platforms.find(str(file)) == file


@pytest.mark.usefixtures("vitis")
def test_found_in_the_installation_of_vitis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XILINX_VITIS", str(tmp_path / "Vitis/2022.2"))
    file = tmp_path / "Vitis/2022.2/base_platforms" / SMARTSSD / f"{SMARTSSD}.xpfm"
    file.parent.mkdir(parents=True)
    file.touch()
    assert platforms.find(SMARTSSD) == file


def test_a_name_is_matched_whole(vitis: Vitis) -> None:
    vitis.install_platform(f"{SMARTSSD}_old")
    with pytest.raises(VitisError, match="is not installed"):
        platforms.find(SMARTSSD)


def test_what_is_missing_is_told_with_what_is_there(vitis: Vitis) -> None:
    other = "xilinx_u250_gen3x16_xdma_4_1_202210_1"
    vitis.install_platform(other)
    with pytest.raises(VitisError) as caught:
        platforms.find(SMARTSSD)
    said = str(caught.value)
    for part in (
        SMARTSSD,
        "xilinx_u250_gen3x16_xdma_4_1_202210_1",
        str(vitis.folder / "platforms"),
        "PLATFORM_REPO_PATHS",
    ):
        assert part in said


@pytest.mark.usefixtures("vitis")
def test_nowhere_to_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLATFORM_REPO_PATHS")
    if platforms.repositories():
        pytest.skip("this machine has a folder of platforms of its own")
    with pytest.raises(VitisError, match="PLATFORM_REPO_PATHS is empty"):
        platforms.find(SMARTSSD)


@pytest.mark.usefixtures("vitis")
def test_a_path_that_is_not_there() -> None:
    with pytest.raises(VitisError, match=r"no platform file /nowhere/x\.xpfm"):
        platforms.find("/nowhere/x.xpfm")


@pytest.mark.parametrize("given", [SMARTSSD, f"/opt/xilinx/platforms/{SMARTSSD}/{SMARTSSD}.xpfm"])
def test_folders_are_named_alike_for_a_name_and_a_path(given: str) -> None:
    assert platforms.key(given) == SMARTSSD
