"""The kernel in simulation: cycles per beat of keys."""

from __future__ import annotations

from hillinfer.figures.canvas import panels, style
from hillinfer.figures.numbers import NONE, count, form
from hillinfer.figures.palette import GREEN, INK, OURS, SOFT
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Kernel


def picture(report: Kernel) -> Picture:
    """Cycles per beat of every format, over its goal."""
    rows = list(reversed(report.formats.items()))
    with style():
        figure, [axes] = panels(height=1.0 + 0.28 * len(rows))
        shares = [each.cycles_per_beat / each.cycles_per_beat_goal for _, each in rows]
        colours = [GREEN if share <= 1 else OURS for share in shares]
        places = range(len(rows))
        axes.hlines(places, 0.97, shares, color=colours, linewidth=2.4)
        axes.scatter(shares, places, color=colours, s=46, zorder=3)
        for place, (share, (_, each)) in enumerate(zip(shares, rows, strict=True)):
            axes.annotate(
                f"{each.cycles_per_beat:.3f}",
                (share, place),
                (8, 0),
                textcoords="offset points",
                va="center",
                color=INK,
            )
        axes.axvline(1, color=SOFT, linewidth=1.2)
        axes.set_xlim(0.97, max([1.01, *shares]) + 0.01)
        axes.set_yticks(places, [name for name, _ in rows])
        axes.set_xlabel("cycles per beat of keys, of the goal (1: met)", loc="right")
        axes.grid(visible=False, axis="y")
    met = sum(share <= 1 for share in shares)
    says = f"{met} of {len(rows)} forms of the kernel take no more cycles per beat than their goal."
    return Picture("kernel", "The kernel, cycles per beat of keys", says, figure, table(report))


def table(report: Kernel) -> Table:
    """Every format, in simulation."""
    rows = [
        (
            name,
            form(each.cycles_per_beat, ".4f"),
            f"≤ {each.cycles_per_beat_goal:g}",
            count(each.fixed_cycles),
            count(each.latency_cycles),
            form(each.gbps_at_200mhz),
            form(each.gbps_at_300mhz),
        )
        for name, each in report.formats.items()
    ]
    headings = ("form", "cycles/beat", "goal", "fixed cycles", "last key → trailer", "GB/s at 200 MHz", "at 300 MHz")
    return Table(headings, rows)


def size_table(report: Kernel) -> Table | None:
    """Estimated resources, and their share of the card; None where they were not estimated."""
    first = next(iter(report.formats.values()), None)
    if first is None or first.lut is None:
        return None
    rows = []
    for kind in ("lut", "ff", "dsp", "bram"):
        value, there = getattr(first, kind), report.card.get(kind)
        share = NONE if value is None or not there else f"{value / there:.1%}"
        rows.append((kind.upper(), NONE if value is None else count(value), share))
    return Table(("resource", "estimated", "of the card"), rows, title="Size, estimated by yosys")
