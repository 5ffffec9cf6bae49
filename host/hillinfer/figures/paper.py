"""What the papers state beside what the timing model gives: a table per figure of theirs, and our curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hillinfer.figures.canvas import legend_above, panels, plain_numbers, style
from hillinfer.figures.numbers import NONE, short
from hillinfer.figures.palette import look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Paper, PaperFigure, Stated, Statement
from hillinfer.simulation.paper.held import held as count_held

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE_X, _WIDE_Y = 30.0, 10.0
"""Largest over smallest value from which an axis is logarithmic."""


def pictures(report: Paper) -> list[Picture]:
    """One per figure that has curves."""
    drawn = []
    for each in report.figures:
        if any(value is not None for curve in each.series for value in curve.y):
            drawn.append(_picture(each, [row for row in report.rows if row.figure == each.figure]))
    return drawn


def tables(report: Paper) -> list[Table]:
    """Statement, ours, the difference, and why, of every figure."""
    return _by_figure(report, report.rows)


def compared(report: Paper) -> list[Table]:
    """Of them the values that the papers give as numbers."""
    return _by_figure(report, [row for row in report.rows if row.reproduced is not None])


def unnumbered(report: Paper) -> list[Table]:
    """Of them those that the papers state without a number."""
    return _by_figure(report, [row for row in report.rows if row.reproduced is None and row.paper is not None])


def says(report: Paper) -> str:
    """How many values are met."""
    met = [row.reproduced for row in report.rows if row.reproduced is not None]
    return f"{_of(met)} values that the papers give as numbers are within {report.close:.0%} of what they state."


def statements(report: Paper) -> Table:
    """Of every statement with a number: whether all our values for it are met, the farthest of them, and its why."""
    lines = []
    for said, rows in _by_statement(report).items():
        met = [row.reproduced is True for row in rows]
        verdict = "holds" if all(met) else f"in part: {_of(met)}" if any(met) else "does not hold"
        farthest = max(rows, key=lambda row: abs(row.difference or 0.0))
        what, _, ours, difference, why = _cells(farthest)
        lines.append((said, verdict, f"{what}: {ours}", difference, why))
    return Table(("the paper states", "verdict", "ours, farthest from it", "difference", "why"), lines)


def held(report: Paper) -> str:
    """How many statements hold."""
    return str(
        count_held((said, row.reproduced is True) for said, rows in _by_statement(report).items() for row in rows)
    )


def _by_statement(report: Paper) -> dict[str, list[Stated]]:
    found: dict[str, list[Stated]] = {}
    for row in report.rows:
        if row.paper is not None and row.reproduced is not None:
            found.setdefault(row.paper.says + _mark(row.paper), []).append(row)
    return found


def counts(report: Paper) -> Table:
    """Of every figure: values that a paper gives as numbers, and how many of them are met."""
    titles = {each.figure: each.title for each in report.figures}
    lines = []
    for figure in dict.fromkeys(row.figure for row in report.rows):
        met = [row.reproduced for row in report.rows if row.figure == figure and row.reproduced is not None]
        lines.append((titles.get(figure, figure), _of(met) if met else "no number stated"))
    return Table(("figure", f"within {report.close:.0%} of what is stated"), lines)


def _of(met: Sequence[bool]) -> str:
    return f"{sum(met)} of {len(met)}"


def _by_figure(report: Paper, rows: Sequence[Stated]) -> list[Table]:
    titles = {each.figure: each.title for each in report.figures}
    return [
        _table([row for row in rows if row.figure == figure], titles.get(figure, figure))
        for figure in dict.fromkeys(row.figure for row in rows)
    ]


def _picture(each: PaperFigure, rows: Sequence[Stated]) -> Picture:
    groups = list(dict.fromkeys(curve.group for curve in each.series))
    labels = list(dict.fromkeys(curve.label for curve in each.series))
    rows_of, columns = -(-len(groups) // 2), min(2, len(groups))
    with style():
        figure, panes = panels(rows_of, columns, height=1.2 + 2.7 * rows_of, sharey=True)
        for place, (group, axes) in enumerate(zip(groups, panes, strict=False)):
            for curve in (curve for curve in each.series if curve.group == group):
                known = [(x, y) for x, y in zip(curve.x, curve.y, strict=True) if y is not None]
                how = look(labels.index(curve.label))
                axes.plot([x for x, _ in known], [y for _, y in known], label=curve.label, **how)
            axes.set_title(group)
            if place % columns == 0:
                axes.set_ylabel(each.y)
        for empty in panes[len(groups) :]:
            empty.remove()
        _scales(each, panes[: len(groups)])
        legend_above(figure, panes[0], columns=3)
    met = [row.reproduced for row in rows if row.reproduced is not None]
    says = f"{_of(met)} values of this figure that a paper states are met." if met else "Ours alone."
    return Picture(f"paper-{each.figure}", each.title, " ".join([says, *each.notes]), figure, _curves(each))


def _scales(each: PaperFigure, panes: Sequence[Axes]) -> None:
    points = [(x, y) for curve in each.series for x, y in zip(curve.x, curve.y, strict=True) if y is not None]
    for axes in panes:
        if each.ticks:
            axes.set_xticks(range(1, len(each.ticks) + 1), each.ticks)
        elif _wide([x for x, _ in points], _WIDE_X):
            axes.set_xscale("log")
            plain_numbers(axes.xaxis)
        if not each.ticks and _wide([y for _, y in points], _WIDE_Y):
            axes.set_yscale("log")
            plain_numbers(axes.yaxis)
        else:
            axes.set_ylim(bottom=min(0.0, *(y for _, y in points)))
        axes.set_xlabel(each.x, loc="right")


def _curves(each: PaperFigure) -> Table:
    places = sorted({x for curve in each.series for x in curve.x})
    rows = []
    for curve in each.series:
        known = dict(zip(curve.x, curve.y, strict=True))
        name = f"{curve.label}, {curve.group}" if curve.group else curve.label
        rows.append((name, *(_number(known.get(x)) for x in places)))
    return Table((f"{each.y}, by {each.x}", *(each.ticks or [f"{x:g}" for x in places])), rows)


def _table(rows: Sequence[Stated], title: str) -> Table:
    return Table(("what", "paper", "ours", "difference", "why"), [_cells(row) for row in rows], title=title)


def _cells(row: Stated) -> tuple[str, ...]:
    difference = NONE if row.difference is None else "within" if row.difference == 0 else f"{row.difference:+.0%}"
    return (
        row.what,
        NONE if row.paper is None else stated(row.paper),
        f"{short(row.ours)} {row.unit}",
        difference,
        row.why,
    )


def stated(said: Statement) -> str:
    """In short, as ``4.21–8.56 ×`` or ``≤ 25 s``; in words where no number is known. Marked if they are not theirs."""
    if said.low is None and said.high is None:
        return said.says + _mark(said)
    if said.low is None or said.high is None:
        sign, bound = ("≤", said.high) if said.low is None else ("≥", said.low)
        return f"{sign} {bound:g} {said.unit}{_mark(said)}"
    between = f"{said.low:g}" if said.low == said.high else f"{said.low:g}–{said.high:g}"
    return f"{between} {said.unit}{_mark(said)}"


def _mark(said: Statement) -> str:
    return f" ({said.mark})" if said.mark else ""


def _number(value: float | None) -> str:
    return NONE if value is None else short(value)


def _wide(values: Sequence[float], least: float) -> bool:
    """Whether they are spread over more than a linear axis shows."""
    return bool(values) and min(values) > 0 and max(values) / min(values) >= least
