"""How far each figure that counts is from its goal."""

from __future__ import annotations

from hillinfer.figures.canvas import panels, style
from hillinfer.figures.goals import GOALS, SHOWN
from hillinfer.figures.numbers import NONE, short
from hillinfer.figures.palette import GREEN, OURS, SOFT
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Bench

_FRACTIONS = {0.0625: "1/16 ", 0.25: "¼", 0.5: "½"}
_TICKS = (0.0625, 0.25, 0.5, 1, 2, 4, 16, 64)


def picture(report: Bench) -> Picture:
    """A line per figure: its distance to the goal, on a logarithmic axis; right of 1 it is met."""
    known = [(name, value) for name, value in report.summary.items() if name in GOALS and value]
    missed = sum(not GOALS[name].met(value) for name, value in known)
    with style():
        figure, [axes] = panels(height=0.9 + 0.3 * max(1, len(known)))
        for place, (name, value) in enumerate(reversed(known)):
            goal = GOALS[name]
            colour = GREEN if goal.met(value) else OURS
            axes.plot([1, goal.reached(value)], [place, place], color=colour, linewidth=2.4)
            axes.plot([goal.reached(value)], [place], "o" if goal.met(value) else "X", color=colour, markersize=8)
        axes.axvline(1, color=SOFT, linewidth=1.2)
        axes.set_xscale("log")
        axes.set_yticks(range(len(known)), [GOALS[name].means for name, _ in reversed(known)])
        values = axes.secondary_yaxis("right")
        values.set_yticks(range(len(known)), [f"{short(value)}  ({GOALS[name]})" for name, value in reversed(known)])
        values.tick_params(length=0)
        values.spines["right"].set_visible(False)
        reached = [GOALS[name].reached(value) for name, value in known] or [1.0]
        low, high = min(*reached, 0.5), max(*reached, 2.0)
        axes.set_xlim(low / 1.4, high * 1.4)
        axes.set_xticks([tick for tick in _TICKS if low / 1.4 <= tick <= high * 1.4])
        axes.set_xticks([], minor=True)
        axes.xaxis.set_major_formatter(lambda value, _: f"{_FRACTIONS.get(value, f'{value:g}')}×")
        axes.set_xlabel("of the goal (right of the line: met)", loc="right")
        axes.grid(visible=False, axis="y")
    says = f"{len(known) - missed} of {len(known)} figures meet their goal, {missed} do not."
    return Picture("summary", "Figures that count, against their goals", says, figure, table(report))


def table(report: Bench) -> Table:
    """Every figure, its goal, why it is missing where it is; what it would be at its bound, and how far that is."""
    rows = []
    for name, value in report.summary.items():
        goal = GOALS.get(name)
        if value is None:
            verdict = report.reasons.get(name, "not measured")
        else:
            verdict = "" if goal is None else "met" if goal.met(value) else "missed"
        figure = NONE if value is None else short(value)
        means = SHOWN.get(name, "") if goal is None else goal.means
        limit = report.bounds.get(name)
        at, over = (NONE, NONE) if limit is None else (short(limit.value), f"{limit.distance:.2f} ×")
        rows.append((name, means, figure, NONE if goal is None else str(goal), verdict, at, over))
    head = ("figure", "what it is", "value", "goal", "verdict", "at its bound", "time over the bound's")
    return Table(head, rows, words=2)
