"""Where attended tokens were found over a run, and how often the hot pool had them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.numbers import count, percent
from hillinfer.figures.palette import BLUE, OURS, RED, TEAL
from hillinfer.figures.picture import Picture, Table
from hillinfer.simulation.trace import LayerStep, Trace

_TIERS = ("newest_rows", "hot_rows", "cold_rows")


def picture(trace: Trace) -> Picture:
    """Above: rows attended, by tier, a layer's mean. Below: the share of those not on the device found in DRAM."""
    steps = range(1, len(trace.steps) + 1)
    newest, hot, cold = ([_mean(step, name) for step in trace.steps] for name in _TIERS)
    rates = [_hit_rate(step) for step in trace.steps]
    with style():
        figure, [above, below] = panels(rows=2, height=4.6, sharex=True, height_ratios=[1.6, 1])
        above.stackplot(
            steps,
            newest,
            hot,
            cold,
            colors=[TEAL, BLUE, RED],
            labels=["on the compute device", "in the hot pool (DRAM)", "read from the cold pool"],
            edgecolor="white",
            linewidth=0.6,
        )
        above.set_ylabel("tokens attended")
        above.margins(x=0)
        below.plot(steps, [rate if rate is not None else float("nan") for rate in rates], color=OURS)
        below.set_ylim(0, 1.04)
        below.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        below.set_ylabel("hot hit rate")
        below.set_xlabel("decode step", loc="right")
        legend_above(figure, above)
    works = [work for step in trace.steps for work in step]
    rate = percent(_hit_rate(works), 1)
    says = (
        f"{trace.model}, {trace.policy}, {count(trace.tokens)} tokens and {len(trace.steps)} steps: of the attended "
        f"tokens that are not on the device, {rate} were in the hot pool."
    )
    return Picture("tiers", "Tiers and hit rate over a run", says, figure, _table(trace))


def _table(trace: Trace) -> Table:
    rows = [
        (
            str(number),
            *(f"{_mean(step, name):.1f}" for name in (*_TIERS, "cold_requests")),
            percent(_hit_rate(step), 1),
            f"{_mean(step, 'moved_rows'):.1f}",
        )
        for number, step in enumerate(trace.steps, 1)
    ]
    headings = ("step", "device", "hot pool", "cold pool", "reads", "hot hit rate", "moved in behind it")
    return Table(headings, rows, words=0, title="Tokens attended by tier, mean of the layers")


def _mean(step: Sequence[LayerStep], name: str) -> float:
    return statistics.fmean(getattr(work, name) for work in step)


def _hit_rate(step: Sequence[LayerStep]) -> float | None:
    hits, misses = (sum(getattr(work, name) for work in step) for name in ("hot_rows", "cold_rows"))
    return hits / (hits + misses) if hits + misses else None
