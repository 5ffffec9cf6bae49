"""Figures 4 and 8 of HillInfer, counted in recorded runs of the engine: who moves, and who stays."""

from __future__ import annotations

from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.paper import runs
from hillinfer.simulation.paper.behaviour import read
from hillinfer.simulation.paper.figure import Figure, Row, Series
from hillinfer.simulation.paper.statements import ALL

_ENDS = (runs.PAPER_LOW, runs.PAPER_HIGH)
_RUNS = (*_ENDS, *(run.long for run in _ENDS))


def migration(hardware: Hardware) -> Figure:  # noqa: ARG001
    """What moves between DRAM and drive at each step, with HKM and without."""
    rows, without, within = [], [], []
    for run in _RUNS:
        trace = runs.recorded(run)
        by_score = read(trace).moved_by_score
        moved = 100 * float(trace.settings["moved_fraction"])
        if run in _ENDS:
            without.append(100 * by_score)
            within.append(moved)
        rows.append(
            Row(
                f"without HKM: share that changes per step of a pool of what is attended, α {run.alpha:.0%}, {run}",
                100 * by_score,
                "%",
                ALL["migration"],
                "counted, not timed: the model and its text (SmolLM2, English), and which pool the share is of",
            )
        )
        rows.append(
            Row(
                f"with HKM: share of the pool that changes per step, α {run.alpha:.0%}, pool {run.hot:.0%}, {run}",
                moved,
                "%",
                why="counted by the engine",
            )
        )
    alphas = [100 * run.alpha for run in _ENDS]
    series = [Series("without HKM", alphas, without), Series("with HKM", alphas, within)]
    return Figure("migration", "Rows that move per step", rows, series, "α, %", "of the pool per step, %")


def lifetimes(hardware: Hardware) -> Figure:  # noqa: ARG001
    """How long tokens stay important: attended in at least half of a run's steps, in fewer, in none."""
    told = {
        "lifetime-long": "attended in at least half of the steps",
        "lifetime-passing": "attended now and then",
        "lifetime-never": "never attended",
    }
    rows, series = [], []
    for run in _RUNS:
        shares = [100 * share for share in read(runs.recorded(run)).lifetimes]
        series.append(Series(f"α {run.alpha:.0%}, {run}", [1, 2, 3], shares))
        for (name, what), share in zip(told.items(), shares, strict=True):
            why = (
                f"counted: at α {run.alpha:.0%} at most {2 * run.alpha:.0%} of the tokens can be attended in half of "
                "the steps; where the paper divides its classes is not known to us"
            )
            rows.append(Row(f"{what}, α {run.alpha:.0%}, {run}", share, "% of the tokens", ALL[name], why))
    words = ["long", "now and then", "never"]
    return Figure(
        "lifetimes", "How long tokens stay important", rows, series, "attended", "of the tokens, %", ticks=words
    )
