"""What the papers state beside what the timing model gives, a table per figure of theirs."""

from __future__ import annotations

from hillinfer.figures.numbers import NONE, short
from hillinfer.figures.picture import Table
from hillinfer.figures.reports import Paper, Stated


def tables(report: Paper) -> list[Table]:
    """Statement, ours, the difference, and why."""
    return [
        Table(
            ("what", "paper", "ours", "difference", "why"),
            [_cells(row) for row in report.rows if row.figure == figure],
            title=figure,
        )
        for figure in dict.fromkeys(row.figure for row in report.rows)
    ]


def _cells(row: Stated) -> tuple[str, ...]:
    difference = f"{row.difference:+.0%}" if isinstance(row.difference, float) else _text(row.difference)
    return row.what, _text(row.paper), _text(row.ours), difference, row.why


def _text(value: str | float | None) -> str:
    return NONE if value is None else value if isinstance(value, str) else short(value)
