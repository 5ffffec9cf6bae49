"""Finding AMD's tools: every release's front end, and one clear message for everything that can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.vitis import commands, tools
from scripts.vitis.errors import VitisError
from scripts.vitis.version import Version
from tests.vitis.stand_ins import Vitis

RELEASES = ["2021.2", "2022.1", "2022.2", "2023.1", "2023.2", "2024.1", "2024.2"]
SCRIPT = Path("hls.tcl")


@pytest.mark.parametrize("release", RELEASES)
def test_hls_is_run_as_its_release_wants(vitis: Vitis, release: str) -> None:
    vitis.install_release(release)
    tool = tools.hls()
    assert str(tool.version) == release
    arguments = commands.hls(tool, SCRIPT)[1:]
    assert arguments == (["-f", "hls.tcl"] if release < "2023.1" else ["--mode", "hls", "--tcl", "hls.tcl"])


def test_vitis_hls_serves_where_only_vitis_hls_is_installed(vitis: Vitis) -> None:
    vitis.install("vitis_hls", "2023.2")
    assert str(tools.hls()) == "vitis_hls 2023.2"


@pytest.mark.usefixtures("vitis")
def test_all_that_is_missing_is_one_message_with_the_way_out() -> None:
    with pytest.raises(VitisError) as caught:
        tools.hls()
    said = str(caught.value)
    for part in ("vitis_hls", "vitis-run", "2021.2 to 2024.2", "settings64.sh", "make csim", "synth-estimate"):
        assert part in said
    with pytest.raises(VitisError, match=r"v\+\+ not found on PATH"):
        tools.linker()
    with pytest.raises(VitisError, match="emconfigutil not found on PATH"):
        tools.emconfigutil()


@pytest.mark.parametrize("release", ["2019.2", "2021.1", "2025.1"])
def test_releases_that_were_not_thought_of_are_refused(vitis: Vitis, release: str) -> None:
    vitis.install("v++", release)
    with pytest.raises(VitisError, match=rf"version {release}; .* Vitis 2021.2 to 2024.2"):
        tools.linker()


def test_a_tool_without_its_environment_is_told_from_one_that_is_absent(vitis: Vitis) -> None:
    vitis.install("v++", "", banner="v++: libxv_commontasks.so: cannot open shared object file\n")
    with pytest.raises(VitisError, match=r"does not say its version .*libxv_commontasks(.|\n)*settings64.sh"):
        tools.linker()


def test_a_tool_that_cannot_be_executed_is_no_traceback(vitis: Vitis) -> None:
    program = vitis.install("v++", "2022.2")
    program.write_text("#!/no/such/interpreter\n")
    with pytest.raises(VitisError, match="cannot be run: No such file"):
        tools.linker()


@pytest.mark.parametrize(
    ("banner", "version"),
    [
        ("****** v++ v2021.2 (64-bit)\n  **** SW Build 3363252 on 2021-10-14-04:41:01\n", Version(2021, 2)),
        ("Vitis HLS - High-Level Synthesis from C, C++ and OpenCL v2022.2.1 (64-bit)", Version(2022, 2)),
        ("Option Map File Used: '/opt/2023_1/data.xml'\n****** v++ v2023.1 (64-bit)", Version(2023, 1)),
        ("****** vitis-run v2024.2 (64-bit)\n  **** SW Build 5238294", Version(2024, 2)),
        ("SW Build 3671529 on 2022-10-13-17:52:11", None),
        ("", None),
    ],
)
def test_version_of_a_banner(banner: str, version: Version | None) -> None:
    assert Version.of_banner(banner) == version
