"""The yosys estimate: what cells cost, how modules add up, and a real run on a design small enough to know by heart."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import synth_estimate
from scripts.synth_estimate import by_module, estimate, resources, table

SMALL = """
module part #(parameter W = 8) (input clk, input [W-1:0] d, output reg [W-1:0] q);
  always @(posedge clk) q <= d;
endmodule
module qk_score (input clk, input [15:0] a, b, input [8:0] address, input [35:0] data, input write,
                 output reg [31:0] product, output reg [35:0] word, output [11:0] q);
  reg [35:0] memory [511:0];
  always @(posedge clk) begin
    product <= a * b;
    if (write) memory[address] <= data;
    word <= memory[address];
  end
  part #(.W(8)) eight (.clk(clk), .d(a[7:0]), .q(q[7:0]));
  part #(.W(4)) four (.clk(clk), .d(b[3:0]), .q(q[11:8]));
endmodule
"""


def test_cells_have_their_costs() -> None:
    cells = {"LUT2": 3, "LUT6": 4, "SRL16E": 2, "RAM32M16": 1, "RAM64X1D": 1, "FDRE": 5, "FDSE": 1, "DSP48E2": 2}
    cells |= {"RAMB36E2": 1, "RAMB18E2": 3, "CARRY4": 9, "INV": 9, "MUXF7": 9}
    assert resources(cells) == {"lut": 18, "ff": 6, "dsp": 2, "bram": 2.5}


def test_a_cell_of_unknown_cost_is_not_free() -> None:
    with pytest.raises(ValueError, match="URAM288"):
        resources({"URAM288": 1})


def test_modules_count_as_often_as_they_stand() -> None:
    fifo = "$paramod\\fifo\\WIDTH=s32'00000000000000000000000000001000"
    modules = {
        "\\qk_score": {"num_cells_by_type": {"stage": 2, fifo: 1, "LUT2": 1}},
        "\\stage": {"num_cells_by_type": {fifo: 3, "DSP48E2": 4}},
        fifo: {"num_cells_by_type": {"FDRE": 10}},
    }
    found = by_module(modules)
    assert found["fifo"]["ff"] == 70
    assert found["stage"]["dsp"] == 8
    assert found["qk_score"]["lut"] == 1


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("small")
    (folder / "qk_score.v").write_text(SMALL)
    return folder, folder / "synth.json"


def test_yosys_finds_what_is_there(small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, output = small
    monkeypatch.setattr(synth_estimate, "ROOT", folder)
    found = estimate(folder, output)
    assert found["estimate"]
    assert found["total"]["dsp"] == 1
    assert found["total"]["bram"] == 0.5
    assert found["modules"]["part"]["ff"] == 12
    assert "of the card" in table(found)


def test_the_same_rtl_is_not_estimated_twice(small: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, output = small
    monkeypatch.setattr(synth_estimate, "synthesise", None)  # would be called
    assert estimate(folder, output)["total"]["dsp"] == 1


def test_no_rtl_is_said(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="make rtl"):
        estimate(tmp_path, tmp_path / "synth.json")
