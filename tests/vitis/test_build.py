"""Builds from the command line to the installed image, with stand-ins for AMD's tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.vitis import build, cli, provenance
from scripts.vitis.platforms import SMARTSSD
from tests.vitis.reports import CSYNTH, TIMING, UTILISATION
from tests.vitis.stand_ins import INFO, Vitis


class Tree:
    """The paths of one build, and its steps as make gives them."""

    def __init__(self, root: Path) -> None:
        self.hls = root / "hls"
        self.xo = root / "hls/qk_score.xo"
        self.image = root / "link/qk_score.xclbin"
        self.bitstreams = root / "bitstreams"

    def compile(self) -> int:
        return cli.main(["hls", "--steps", "csynth,export", "--work", str(self.hls), "--xo", str(self.xo)])

    def link(self, *more: str) -> int:
        return cli.main(["link", "--xo", str(self.xo), "--output", str(self.image), *more])

    def install(self) -> int:
        return cli.main(["install", str(self.image), "--hls", str(self.hls), "--output", str(self.bitstreams)])

    def leave_reports(self, timing: str = TIMING) -> None:
        (self.hls / "csynth.xml").write_text(CSYNTH)
        reports = self.image.parent / "reports/link/imp"
        reports.mkdir(parents=True)
        (reports / "impl_1_hw_bb_locked_timing_summary_routed.rpt").write_text(timing)
        (reports / "impl_1_kernel_util_routed.rpt").write_text(UTILISATION)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "build")


@pytest.fixture
def ready(vitis: Vitis, tree: Tree) -> Tree:
    """A machine with Vitis 2022.2 and the platform, and the kernel compiled."""
    vitis.install_release("2022.2")
    vitis.install_platform()
    assert tree.compile() == 0
    return tree


def record_of(file: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(provenance.record_path(file).read_text())
    return record


@pytest.mark.parametrize("release", ["2021.2", "2022.2", "2023.2", "2024.2"])
def test_compile_and_link_in_every_generation(vitis: Vitis, tree: Tree, release: str) -> None:
    vitis.install_release(release)
    platform = vitis.install_platform()
    assert tree.compile() == 0
    assert tree.link("--target", "hw_emu", "--clock", "250") == 0

    hls, link = vitis.calls
    assert hls["tool"] == ("vitis_hls" if release < "2023.1" else "vitis-run")
    assert Path(hls["argv"][-1]).samefile("hls/vitis/hls.tcl")
    assert (hls["cwd"], link["cwd"]) == (str(tree.hls), str(tree.image.parent))
    assert hls["settings"]["QK_STEPS"] == "csynth export"
    assert link["argv"][link["argv"].index("--platform") + 1] == str(platform)
    record = record_of(tree.image)
    assert record["tools"] == {"hls": f"{hls['tool']} {release}", "link": f"v++ {release}"}
    assert (record["target"], record["platform"]) == ("hw_emu", SMARTSSD)
    assert record["clock_mhz"] == {"wanted": 250, "reached": 300}
    assert record["sha256"]["xo"] == provenance.checksum(tree.xo)
    assert "hls/qk_score.cpp" in record["sha256"]["sources"]


def test_output_of_a_tool_is_shown_and_kept(ready: Tree, capfd: pytest.CaptureFixture[str]) -> None:
    assert ready.link() == 0
    assert "INFO: running v++" in capfd.readouterr().out
    assert "INFO: running v++" in (ready.image.parent / "link.log").read_text()


def test_a_tool_that_fails_is_named_with_its_error_and_its_log(
    vitis: Vitis, ready: Tree, capsys: pytest.CaptureFixture[str]
) -> None:
    vitis.install("v++", "2022.2", fails="Timing could not be met")
    assert ready.link() == 2
    said = capsys.readouterr().err
    assert "v++ failed with exit code 1" in said
    assert str(ready.image.parent / "link.log") in said
    assert "Timing could not be met" in said
    assert "Traceback" not in said
    assert not provenance.record_path(ready.image).exists()


def test_a_tool_that_leaves_nothing_is_an_error(vitis: Vitis, ready: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    vitis.install("v++", "2022.2", silent=True)
    assert ready.link() == 2
    assert f"did not write {ready.image}" in capsys.readouterr().err


def test_a_missing_platform_is_told_before_anything_runs(
    vitis: Vitis, ready: Tree, capsys: pytest.CaptureFixture[str]
) -> None:
    before = len(vitis.calls)
    assert ready.link("--platform", "xilinx_u250") == 2
    assert "platform xilinx_u250 is not installed" in capsys.readouterr().err
    assert len(vitis.calls) == before


@pytest.mark.usefixtures("vitis")
def test_a_wrong_target_is_told_before_the_tools_are_looked_for(tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    assert tree.link("--target", "sw_emu") == 2
    assert "sw_emu is not offered" in capsys.readouterr().err


def test_a_kernel_of_another_release_is_not_linked(
    vitis: Vitis, ready: Tree, capsys: pytest.CaptureFixture[str]
) -> None:
    vitis.install("v++", "2021.2")
    assert ready.link() == 2
    assert "was made by vitis_hls 2022.2, but on PATH is v++ 2021.2: make clean-hw" in capsys.readouterr().err


def test_a_missing_kernel_is_told(vitis: Vitis, tree: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    vitis.install_release("2022.2")
    vitis.install_platform()
    assert tree.link() == 2
    assert f"there is no {tree.xo}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("info", "reached"),
    [(INFO, 300), (INFO.replace("300 MHz", "272 MHz"), 272), ("", None)],
    ids=["as wanted", "lowered", "unsaid"],
)
def test_the_clock_that_was_reached(vitis: Vitis, ready: Tree, info: str, reached: int | None) -> None:
    vitis.install("v++", "2022.2", info=info)
    assert ready.link() == 0
    assert record_of(ready.image)["clock_mhz"] == {"wanted": 300, "reached": reached}


def test_emconfig(vitis: Vitis, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vitis.install_platform()
    vitis.install("emconfigutil", "2022.2")
    assert cli.main(["emconfig", "--output", str(tmp_path / "emu")]) == 0
    assert (tmp_path / "emu/emconfig.json").is_file()
    vitis.install("emconfigutil", "2022.2", silent=True)
    assert cli.main(["emconfig", "--output", str(tmp_path / "other")]) == 2
    assert f"did not write {tmp_path / 'other/emconfig.json'}" in capsys.readouterr().err


def test_install_puts_image_and_provenance_among_the_bitstreams(ready: Tree) -> None:
    assert ready.link() == 0
    ready.leave_reports()
    assert ready.install() == 0
    image = ready.bitstreams / f"qk_score.hw.{SMARTSSD}.300MHz.xclbin"
    assert image.read_text() == ready.image.read_text()
    record = record_of(image)
    assert record["sha256"]["xclbin"] == provenance.checksum(image)
    assert set(record["reports"]) == {"synthesis", "timing", "utilisation"}
    assert record["reports"]["timing"]["setup"] == 0.021
    assert cli.main(["verify", str(image)]) == 0


def test_an_image_that_misses_a_gate_is_kept_and_says_so(ready: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    assert ready.link() == 0
    ready.leave_reports(TIMING.replace("0.021", "-0.310"))
    assert ready.install() == 0
    assert "misses setup by 0.310 ns" in capsys.readouterr().out
    faults = record_of(ready.bitstreams / f"qk_score.hw.{SMARTSSD}.300MHz.xclbin")["reports"]["timing"]["faults"]
    assert "misses setup" in faults[0]


def test_an_image_without_reports_is_kept_too(ready: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    assert ready.link() == 0
    assert ready.install() == 0
    assert "no routed timing summary under" in capsys.readouterr().out
    assert record_of(ready.bitstreams / f"qk_score.hw.{SMARTSSD}.300MHz.xclbin")["reports"]["timing"]["faults"]


def test_a_folder_of_bitstreams_that_cannot_be_written(ready: Tree, capsys: pytest.CaptureFixture[str]) -> None:
    assert ready.link() == 0
    ready.leave_reports()
    ready.bitstreams.write_text("a file in the folder's place")
    assert ready.install() == 2
    said = capsys.readouterr().err
    assert "cannot be written" in said
    assert f"The image itself is {ready.image}" in said


def test_installing_again_replaces_image_and_record_together(ready: Tree) -> None:
    assert ready.link() == 0
    ready.leave_reports()
    assert ready.install() == 0
    ready.xo.write_text("another kernel")
    build.link("hw", SMARTSSD, Path("hls/vitis/smartssd.cfg"), 300, ready.xo, ready.image)
    assert ready.install() == 0
    assert cli.main(["verify", str(ready.bitstreams / f"qk_score.hw.{SMARTSSD}.300MHz.xclbin")]) == 0
