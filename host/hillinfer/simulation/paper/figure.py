"""A figure of a paper beside ours: rows with the statement, ours, the difference and why; and series for a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from hillinfer.simulation.paper.statement import Statement

CLOSE = 0.15
"""What counts as reproduced: within so much of what is stated."""


@dataclass(frozen=True)
class Row:
    """One value of ours.

    what        what was timed or counted, and how it is defined
    ours, unit  the value
    statement   what the paper states, None for a value that only we have
    why         which assumption it hangs on
    """

    what: str
    ours: float
    unit: str
    statement: Statement | None = None
    why: str = ""

    @property
    def difference(self) -> float | None:
        """As a share of what is stated; 0 within its range, None where there is nothing to compare with."""
        return None if self.statement is None else self.statement.difference(self.ours)

    @property
    def reproduced(self) -> bool | None:
        """Whether it is within ``CLOSE``."""
        return None if self.difference is None else abs(self.difference) <= CLOSE


@dataclass(frozen=True)
class Series:
    """A line of the plot: y over x. group: whose plot it stands in, where there are several."""

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    group: str = ""


@dataclass(frozen=True)
class Figure:
    """x, y: names of the axes, with units; ticks: of 1, 2, … on x, where they stand for words."""

    name: str
    title: str
    rows: Sequence[Row]
    series: Sequence[Series] = ()
    x: str = ""
    y: str = ""
    notes: Sequence[str] = field(default_factory=list)
    ticks: Sequence[str] = ()

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "figure": self.name,
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "ticks": list(self.ticks),
            "rows": [_row(self.name, row) for row in self.rows],
            "series": [asdict(each) for each in self.series],
            "notes": list(self.notes),
        }


def _row(figure: str, row: Row) -> dict[str, Any]:
    said, paper = row.statement, None
    if said is not None:
        paper = {
            "says": said.says,
            "low": said.low,
            "high": said.high,
            "unit": said.unit,
            "where": said.where,
            "known_from": said.read.value,
            "mark": said.read.mark,
            "source": said.source,
        }
    return {
        "figure": figure,
        "what": row.what,
        "paper": paper,
        "ours": row.ours,
        "unit": row.unit,
        "difference": row.difference,
        "reproduced": row.reproduced,
        "why": row.why,
    }
