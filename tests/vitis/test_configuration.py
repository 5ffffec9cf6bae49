"""The files that Vitis reads: hls.tcl under a real Tcl interpreter, and the configurations against the kernel."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts.vitis.platforms import SMARTSSD_PART

ROOT = Path(__file__).parents[2]
VITIS = ROOT / "hls/vitis"
KERNEL = ROOT / "hls/qk_score.cpp"
PREFIX = "called: "

# The commands of HLS, each of which prints how it was called.
COMMANDS = ["set_top", "add_files", "set_part", "create_clock", "csim_design", "csynth_design", "cosim_design"]
COMMANDS += ["export_design"]
GENERATIONS = {"projects": ["open_project", "open_solution"], "components": ["open_component"]}

needs_tcl = pytest.mark.skipif(shutil.which("tclsh") is None, reason="no Tcl interpreter: apt-get install tcl")


def run_tcl(tmp_path: Path, generation: str, **settings: str) -> list[str]:
    """The commands that hls.tcl gives, in order, where only those of a generation of Vitis exist."""
    names = GENERATIONS[generation] + COMMANDS
    procs = "".join(f'proc {name} {{args}} {{ puts "{PREFIX}{name} $args" }}\n' for name in names)
    script = tmp_path / "run.tcl"
    script.write_text(f"{procs}source {VITIS / 'hls.tcl'}\n")
    environment = {**os.environ, "QK_WORK": str(tmp_path / "work"), **settings}
    said = subprocess.run(["tclsh", str(script)], env=environment, capture_output=True, text=True, check=True).stdout
    return [line.removeprefix(PREFIX) for line in said.splitlines() if line.startswith(PREFIX)]


@needs_tcl
@pytest.mark.parametrize(
    ("generation", "opens"),
    [
        ("projects", ["open_project -reset qk_score", "open_solution -reset solution1 -flow_target vitis"]),
        ("components", ["open_component -reset qk_score -flow_target vitis"]),
    ],
)
def test_tcl_synthesises_by_default(tmp_path: Path, generation: str, opens: list[str]) -> None:
    assert run_tcl(tmp_path, generation) == [
        *opens,
        "set_top qk_score",
        f"add_files {KERNEL} -cflags -std=c++14",
        f"add_files -tb {VITIS}/tb_qk_score.cpp -cflags {{-std=c++14 -Wno-unknown-pragmas}}",
        f"set_part {SMARTSSD_PART}",
        "create_clock -period 3.333 -name default",
        "csynth_design ",
    ]
    assert (tmp_path / "work").is_dir()


@needs_tcl
def test_tcl_runs_the_steps_it_is_told(tmp_path: Path) -> None:
    settings = {"QK_STEPS": "csim csynth cosim export", "QK_STIMULI": "/s.bin", "QK_XO": "/q.xo", "QK_PART": "xcu250"}
    given = run_tcl(tmp_path, "projects", QK_PERIOD_NS="4.000", **settings)
    assert given[-6:] == [
        "set_part xcu250",
        "create_clock -period 4.000 -name default",
        "csim_design -argv /s.bin",
        "csynth_design ",
        "cosim_design -rtl verilog -argv /s.bin",
        "export_design -format xo -output /q.xo",
    ]


@needs_tcl
def test_an_error_in_a_step_ends_the_script(tmp_path: Path) -> None:
    script = tmp_path / "run.tcl"
    script.write_text(
        f"proc unknown {{args}} {{}}\nproc csynth_design {{}} {{ error failed }}\nsource {VITIS}/hls.tcl\n"
    )
    environment = {**os.environ, "QK_WORK": str(tmp_path / "work")}
    assert subprocess.run(["tclsh", str(script)], env=environment, capture_output=True).returncode != 0


def pointers() -> list[str]:
    """The kernel's pointer arguments."""
    signature = re.search(r"void qk_score\(([^)]*)\)", KERNEL.read_text())
    assert signature is not None
    return re.findall(r"\*\s*(\w+)", signature[1])


def test_every_pointer_is_connected_to_the_cards_memory() -> None:
    lines = (VITIS / "smartssd.cfg").read_text().splitlines()
    assert [line for line in lines if line.startswith("nk=")] == ["nk=qk_score:1:qk_score_1"]
    connected = [line for line in lines if line.startswith("sp=")]
    assert connected == [f"sp=qk_score_1.{name}:bank0" for name in pointers()]


def test_co_simulation_copies_as_many_beats_as_the_testbench_has() -> None:
    ports = re.findall(r"^#pragma HLS INTERFACE m_axi port=(\w+) .*\bdepth=(\d+)\b", KERNEL.read_text(), re.MULTILINE)
    beats = re.search(r"const unsigned kBeats = (\d+);", (VITIS / "tb_qk_score.cpp").read_text())
    assert beats is not None
    assert ports == [(name, beats[1]) for name in pointers()]


def test_the_component_is_that_of_the_script() -> None:
    parser = configparser.ConfigParser()
    parser.read_string("[top]\n" + (VITIS / "hls_config.cfg").read_text())
    tcl = (VITIS / "hls.tcl").read_text()
    hls = dict(parser["hls"])
    assert parser["top"]["part"] == SMARTSSD_PART
    assert SMARTSSD_PART in tcl
    assert f"QK_PERIOD_NS {hls['clock'].removesuffix('ns')}" in tcl
    assert f"set_top {hls['syn.top']}" in tcl
    assert hls["flow_target"] == "vitis"
    assert hls["package.output.format"] == "xo"
    assert (VITIS / hls["syn.file"]).samefile(KERNEL)
    assert (VITIS / hls["tb.file"]).is_file()
    for flags in (hls["syn.cflags"], hls["tb.cflags"]):
        assert "-std=c++14" in flags
