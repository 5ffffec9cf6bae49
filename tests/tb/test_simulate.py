"""Builds and runs, on a design of three lines: passes, failures, crashes, waveforms, and the cache of builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb.rtl import Rtl, RtlError
from tb.simulate import Simulator, build_simulator, simulate

DESIGN = """
module qk_score (input ap_clk, input [7:0] a, output reg [7:0] b);
  always @(posedge ap_clk) b <= a;
endmodule
"""
TESTS = """
import os
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles

async def pass_on(dut, expected):
    Clock(dut.ap_clk, 4, "ns").start()
    dut.a.value = 5
    await ClockCycles(dut.ap_clk, 10)
    assert dut.b.value == expected, f"b is {int(dut.b.value)}"

@cocotb.test()
async def right(dut):
    await pass_on(dut, 5)

@cocotb.test()
async def wrong(dut):
    await pass_on(dut, 6)

@cocotb.test(skip="CRASH" not in os.environ)
async def crash(dut):
    os._exit(3)
"""


@pytest.fixture(scope="module")
def design(tmp_path_factory: pytest.TempPathFactory) -> Rtl:
    folder = tmp_path_factory.mktemp("design")
    (folder / "qk_score.sv").write_text(DESIGN)
    (folder / "report.json").write_text("{}")
    return Rtl((folder / "qk_score.sv",), (), folder / "report.json")


@pytest.fixture(scope="module")
def simulator(design: Rtl) -> Simulator:
    return build_simulator(design, design.registers.parent / "sim", waves=True)


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small_tests.py").write_text(TESTS)
    monkeypatch.syspath_prepend(tmp_path)


def test_each_test_is_reported_and_waveforms_are_written(simulator: Simulator, tmp_path: Path) -> None:
    seen = []
    results = simulate(simulator, ["small_tests"], tmp_path / "work", {}, seen.append)
    assert seen == results
    errors = {result.name: result.error for result in results if result.name != "crash"}
    assert errors["right"] == ""
    assert "b is 5" in errors["wrong"]
    assert all(result.cycles >= 9 for result in results if result.name != "crash")
    assert (tmp_path / "work" / "small_tests" / "dump.vcd").stat().st_size > 500


def test_a_simulation_that_dies_is_a_failure(simulator: Simulator, tmp_path: Path) -> None:
    (result,) = simulate(simulator, ["small_tests"], tmp_path / "work", {"CRASH": "1"}, lambda _: None)
    assert result.name == "simulation"
    assert "ended without results" in result.error


def test_a_filter_picks_tests(simulator: Simulator, tmp_path: Path) -> None:
    results = simulate(simulator, ["small_tests"], tmp_path / "work", {}, lambda _: None, "right")
    assert [result.name for result in results] == ["right"]


def test_a_build_is_made_once(design: Rtl, simulator: Simulator) -> None:
    before = (simulator.folder / "qk_score").stat().st_mtime_ns
    again = build_simulator(design, design.registers.parent / "sim", waves=True)
    assert (again.folder / "qk_score").stat().st_mtime_ns == before


def test_verilog_that_does_not_compile_is_said(tmp_path: Path) -> None:
    (tmp_path / "qk_score.sv").write_text("module qk_score (input a); assign nothing = ; endmodule")
    rtl = Rtl((tmp_path / "qk_score.sv",), (), tmp_path / "report.json")
    with pytest.raises(RtlError, match="verilator failed"):
        build_simulator(rtl, tmp_path / "sim", waves=False)
