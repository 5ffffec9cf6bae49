"""The table of a box and its variants, as JSON and as a picture."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hillinfer.simulation.advice import report
from hillinfer.simulation.advice.plot import draw
from hillinfer.simulation.hardware import load
from hillinfer.simulation.shape import named


def test_rows_variants_and_a_plot(tmp_path: Path) -> None:
    advice = report.advise(load("paper"), named("opt-6.7b"), [2048, 8192], [1], ["hillinfer", "full"])
    told = json.loads(json.dumps(report.as_dict(advice)))
    assert [(row["context"], row["method"]) for row in told["rows"]] == [
        (2048, "hillinfer"),
        (2048, "full"),
        (8192, "hillinfer"),
        (8192, "full"),
    ]
    for row in told["rows"]:
        assert row["tokens_per_second"] * row["ms_per_step"] == pytest.approx(1000)
    assert {row["variant"] for row in told["variants"]} == {
        "twice the SmartSSDs",
        "a PCIe 5 SSD, no SmartSSD",
        "twice the DRAM",
    }
    draw(advice, tmp_path / "fit.svg")
    assert "hillinfer" in (tmp_path / "fit.svg").read_text()
