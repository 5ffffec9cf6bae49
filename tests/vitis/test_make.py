"""hardware.mk: what make would run, from dry runs, and that it runs nothing it need not."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.vitis import commands
from scripts.vitis.platforms import SMARTSSD, SMARTSSD_PART

ROOT = Path(__file__).parents[2]
HARDWARE = (ROOT / "hardware.mk").read_text()
TARGETS = re.findall(r"^([a-z-]+):.*## ", HARDWARE, re.MULTILINE)

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="no make: apt-get install make")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with the files that hardware.mk's rules look at, all equally old, and a Makefile that includes it."""
    for name in ("hls", "scripts", "tb"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "hardware.mk", tmp_path)
    (tmp_path / "Makefile").write_text("PY := .venv/bin/python\n.PHONY: setup\nsetup:\n\t@:\ninclude hardware.mk\n")
    for file in tmp_path.rglob("*"):
        os.utime(file, (1000, 1000))
    return tmp_path


def dry_run(tree: Path, *arguments: str) -> list[str]:
    """The commands that make would give."""
    environment = {"PATH": os.environ["PATH"]}
    made = subprocess.run(["make", "-n", *arguments], cwd=tree, env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return [line for line in re.sub(r"\\\n\s*", "", made.stdout).splitlines() if line != ":"]


def make_file(tree: Path, name: str, age: int = 2000) -> None:
    file = tree / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    os.utime(file, (age, age))


def steps(lines: list[str]) -> list[str]:
    """The commands of scripts/vitis among the lines, by name."""
    return [found[1] for line in lines if (found := re.search(r"-m scripts\.vitis (\w+)", line))]


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_has_a_help_line_and_can_be_made(tree: Path, target: str) -> None:
    assert dry_run(tree, target)
    assert re.search(rf"^\.PHONY:.*\b{target}\b", HARDWARE, re.MULTILINE)


def test_an_image_is_compiled_linked_and_installed(tree: Path) -> None:
    lines = dry_run(tree, "xclbin")
    assert steps(lines) == ["probe", "hls", "link", "install"]
    lines = lines[1:]
    compiled = f"build/vitis/hls/{SMARTSSD_PART}/300MHz"
    linked = f"build/vitis/hw/{SMARTSSD}/300MHz"
    assert f"--steps csynth,export --work {compiled}/xo" in lines[0]
    assert f"--xo {compiled}/qk_score.xo" in lines[0]
    assert f"--platform {SMARTSSD} --connectivity hls/vitis/smartssd.cfg --clock 300" in lines[1]
    assert f"--output {linked}/qk_score.xclbin" in lines[1]
    assert f"install {linked}/qk_score.xclbin --hls {compiled}/xo" in lines[2]


def test_targets_platforms_and_clocks_have_folders_of_their_own(tree: Path) -> None:
    given = [(), ("TARGET=hw_emu",), ("PLATFORM=/p/other.xpfm",), ("CLOCK_MHZ=250",), ("PART=xcu250",)]
    outputs = [
        re.findall(r"--(?:output|xo) (\S+)", " ".join(dry_run(tree, "xclbin", *arguments))) for arguments in given
    ]
    assert len({tuple(files) for files in outputs}) == len(given)
    assert "build/vitis/hw/other/300MHz/qk_score.xclbin" in outputs[2]


def test_what_is_up_to_date_is_not_built_again(tree: Path) -> None:
    xo = f"build/vitis/hls/{SMARTSSD_PART}/300MHz/qk_score.xo"
    image = f"build/vitis/hw/{SMARTSSD}/300MHz/qk_score.xclbin"
    installed = f"bitstreams/qk_score.hw.{SMARTSSD}.300MHz.xclbin"
    for age, name in enumerate((xo, image, installed), start=2000):
        make_file(tree, name, age)
    assert steps(dry_run(tree, "xclbin")) == []
    make_file(tree, "hls/vitis/smartssd.cfg", 3000)
    assert steps(dry_run(tree, "xclbin")) == ["link", "install"]
    make_file(tree, "hls/process/normalise.h", 3000)
    assert steps(dry_run(tree, "xclbin")) == ["hls", "link", "install"]


@pytest.mark.parametrize(
    "name", ["hls/native.cpp", "hls/compat/ap_int.h", "hls/vitis/tb_qk_score.cpp", "hls/README.md"]
)
def test_what_does_not_go_into_the_fpga_costs_no_build(tree: Path, name: str) -> None:
    make_file(tree, f"build/vitis/hls/{SMARTSSD_PART}/300MHz/qk_score.xo")
    make_file(tree, f"hls/{name}", 3000)
    assert "hls" not in steps(dry_run(tree, "xo"))


@pytest.mark.parametrize("goal", ["xclbin", "report", "verify"])
def test_a_wrong_target_is_told_at_once(tree: Path, goal: str) -> None:
    with pytest.raises(AssertionError, match=r"TARGET=sw_emu is not offered: hw .* or hw_emu; make csim"):
        dry_run(tree, goal, "TARGET=sw_emu")
    assert dry_run(tree, "csim", "TARGET=sw_emu")  # a name that others' environments may use


def test_the_native_library_and_the_rtl_follow_their_sources(tree: Path) -> None:
    make_file(tree, "build/native/libqk_score.so")
    make_file(tree, "build/rtl/qk_score.sv")
    assert not [line for line in dry_run(tree, "csim") if "cmake" in line]
    assert not [line for line in dry_run(tree, "rtl") if "hls2rtl" in line]
    make_file(tree, "hls/process/multiply.h", 3000)
    assert [line for line in dry_run(tree, "csim") if "cmake --build" in line]
    assert [line for line in dry_run(tree, "rtl") if "-m hls2rtl" in line]


def test_cosimulation_runs_on_either_rtl(tree: Path) -> None:
    opened = dry_run(tree, "cosim")
    assert any("-m hls2rtl" in line for line in opened)
    assert steps(opened) == []
    vitis = dry_run(tree, "cosim", "RTL=vitis")
    assert not any("-m hls2rtl" in line for line in vitis)
    assert steps(vitis) == ["hls"]


def test_the_simulations_of_vitis_get_their_stimuli(tree: Path) -> None:
    lines = dry_run(tree, "hls-cosim")
    assert steps(lines) == ["stimuli", "hls"]
    assert "--steps csynth,cosim" in lines[-1]
    assert "--stimuli build/vitis/stimuli.bin" in lines[-1]


def test_the_kernels_clock_can_be_named(tree: Path) -> None:
    assert "--kernel-clock" not in dry_run(tree, "report")[-1]
    assert "--kernel-clock clk_out1" in dry_run(tree, "report", "KERNEL_CLOCK=clk_out1")[-1]
    assert "--kernel-clock clk_out1" in dry_run(tree, "xclbin", "KERNEL_CLOCK=clk_out1")[-1]


def test_defaults_are_those_of_the_scripts() -> None:
    assert re.search(rf"^PLATFORM  \?= {SMARTSSD}$", HARDWARE, re.MULTILINE)
    assert re.search(rf"^PART         \?= {SMARTSSD_PART}$", HARDWARE, re.MULTILINE)
    assert re.search(rf"^TARGET    \?= {commands.TARGETS[0]}$", HARDWARE, re.MULTILINE)
