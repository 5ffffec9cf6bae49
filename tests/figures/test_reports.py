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


def test_statements_of_the_papers_are_counted_whatever_their_rows():
    def row(says, ours, difference):
        said = {"says": says, "low": 4.0, "high": 8.0, "unit": "×"}
        met = abs(difference) <= 0.15
        return {"figure": "f", "what": f"at {ours}", "paper": said, "ours": ours, "unit": "×", "difference": difference,
                "reproduced": met, "why": f"why {ours}"}  # fmt: skip

    rows = [row("a", 5.0, 0.0), row("b", 5.0, 0.0), row("b", 2.0, -0.5), row("b", 3.0, -0.25), row("c", 16.0, 1.0)]
    own = {"figure": "f", "what": "ours", "paper": None, "ours": 1.0, "unit": "×", "difference": None}
    rows.append(own | {"reproduced": None, "why": ""})
    head = {"kind": "hillinfer-simulate-paper", "version": 1, "figures": []}
    report = reports.Paper.model_validate(head | {"rows": rows})
    assert [line[:2] for line in paper.statements(report).rows] == [
        ("a", "holds"),
        ("b", "in part: 1 of 3"),
        ("c", "does not hold"),
    ]
    assert paper.statements(report).rows[1][2:] == ("at 2.0: 2 ×", "-50%", "why 2.0")
    assert paper.held(report) == "Of 3 statements with a number 1 hold in every value and 1 in some."
