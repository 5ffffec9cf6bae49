"""What each part of the design is worth: a step with more and more of them."""

from __future__ import annotations

from hillinfer.figures.canvas import panels, style
from hillinfer.figures.numbers import form, percent
from hillinfer.figures.palette import GREY, INK, OURS
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Ablation


def picture(report: Ablation) -> Picture:
    """A bar per variant."""
    rows = list(reversed(report.rows))
    with style():
        figure, [axes] = panels(height=0.9 + 0.36 * len(rows))
        colours = [GREY if row.label.startswith("stock") else OURS for row in rows]
        bars = axes.barh([row.label for row in rows], [row.ms for row in rows], color=colours, height=0.62)
        axes.bar_label(bars, [f"{row.ms:.0f}" for row in rows], padding=4, color=INK)
        axes.set_xlabel("a decode step, ms", loc="right")
        axes.grid(visible=False, axis="y")
        axes.margins(x=0.08)
    says = "; ".join(f"{row.label}: {row.ms:.0f} ms" for row in report.rows) + "."
    return Picture("ablation", "What each part adds", says, figure, table(report))


def table(report: Ablation) -> Table:
    """A step and its pool, per variant."""
    rows = [
        (
            row.label,
            form(row.ms, ".0f"),
            form(row.times_stock),
            percent(row.hot_hit_rate, 1),
            percent(row.moved_fraction, 1),
        )
        for row in report.rows
    ]
    return Table(("variant", "ms", "× stock", "hit rate", "moved per step"), rows)
