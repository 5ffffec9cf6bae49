"""What commands write is what pictures read: held against the writers' own code."""

from __future__ import annotations

import json

from hillinfer.figures import paper, reports
from hillinfer.simulation.hardware import load
from hillinfer.simulation.paper.figure import Figure, Row, Series
from hillinfer.simulation.paper.report import as_dict


def test_the_papers_report():
    figure = Figure(
        "speedup",
        "Speedup by batch",
        [Row("ours alone", 3.0, "×")],
        [Series("OPT-6.7B", [1, 4, 10], [4.0, None, 9.1])],
        "batch",
        "times",
        ["a note"],
    )
    written = json.dumps(as_dict([figure], load("paper")))
    read = reports.Paper.model_validate_json(written)
    [picture] = paper.pictures(read)
    assert picture.table.rows == [("OPT-6.7B", "4", "–", "9.1")]
    assert "a note" in picture.says
    [table] = paper.tables(read)
    assert table.rows == [("ours alone", "–", "3 ×", "–", "")]


def test_a_statement_in_short():
    def said(low: float | None, high: float | None) -> str:
        return paper.stated(reports.Statement(says="fast", low=low, high=high, unit="s"))

    assert said(4.21, 8.56) == "4.21–8.56 s"
    assert said(None, 25) == "≤ 25 s"
    assert said(50, None) == "≥ 50 s"
    assert said(3, 3) == "3 s"
    assert said(None, None) == "fast"
