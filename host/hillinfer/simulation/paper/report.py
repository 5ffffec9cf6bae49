"""Figures worked out, and what of them goes into JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.paper import heterocache, hillinfer
from hillinfer.simulation.paper.figure import CLOSE, Figure, Row
from hillinfer.simulation.paper.held import Held, held
from hillinfer.simulation.paper.registry import FIGURES, find


def figures(
    names: Sequence[str], hardware: Hardware, on_progress: Callable[[str], None] = lambda _: None
) -> list[Figure]:
    """The figures of these names, all for none. SettingError for an unknown one, before any is worked out."""
    chosen = {name: find(name) for name in names or FIGURES}
    found = []
    for name, figure in chosen.items():
        on_progress(name)
        found.append(figure(hardware))
    return found


def as_dict(found: Sequence[Figure], hardware: Hardware) -> dict[str, Any]:
    """Ready for JSON: all rows in one list, and each figure with its series."""
    told = [figure.as_dict() for figure in found]
    compared = [row for figure in found for row in figure.rows if row.reproduced is not None]
    return {
        "kind": "hillinfer-simulate-paper",
        "version": 1,
        "hardware": hardware.name,
        "papers": {
            name: {"title": paper.title, "source": paper.source}
            for name, paper in (("hillinfer", hillinfer.PAPER), ("heterocache", heterocache.PAPER))
        },
        "close": CLOSE,
        "compared": len(compared),
        "reproduced": sum(row.reproduced is True for row in compared),
        "statements": asdict(statements(found)),
        "rows": [row for figure in told for row in figure["rows"]],
        "figures": told,
    }


def statements(found: Sequence[Figure]) -> Held:
    """How many statements hold."""
    rows = [row for figure in found for row in figure.rows]
    return held((row.statement.says, row.reproduced) for row in rows if row.statement and row.reproduced is not None)


def stated(row: Row) -> str:
    """What the paper states, in short: ``4.21 to 8.56 ×``, ``under 25 s``; "a figure" where no number is known.

    Marked where that is not known from the paper, or from somebody who read it.
    """
    said = row.statement
    if said is None:
        return "–"
    if said.low is None and said.high is None:
        value = "a figure"
    elif said.low is None:
        value = f"≤ {said.high:g} {said.unit}"
    elif said.high is None:
        value = f"≥ {said.low:g} {said.unit}"
    else:
        value = f"{said.low:g} {said.unit}" if said.low == said.high else f"{said.low:g}–{said.high:g} {said.unit}"
    return f"{value} ({said.read.mark})" if said.read.mark else value


def outcome(row: Row) -> str:
    """``within``, or by how much it is not."""
    if row.difference is None:
        return "–"
    return "within" if row.difference == 0 else f"{row.difference:+.0%}"
