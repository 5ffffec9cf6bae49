"""HillInfer's balance: latency against β, and who waits for whom when the pools are of other sizes (figure 5)."""

from __future__ import annotations

from functools import partial

from hillinfer.calibration.rates import beta_of
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.methods.hillinfer import HillInfer
from hillinfer.simulation.paper import pools, runs, setting
from hillinfer.simulation.paper.figure import Figure, Row, Series
from hillinfer.simulation.paper.sensitivity import hangs_on
from hillinfer.simulation.paper.statements import ALL
from hillinfer.simulation.shape import Shape, named
from hillinfer.simulation.trace import Trace

_MODEL, _BATCH = "opt-6.7b", 10
_POOLS = tuple(each / 20 for each in range(2, 20))
_SETS = {
    "each side selects its own, as in the formula": HillInfer(global_set=False),
    "one selection of all scores, as in this project": HillInfer(),
}


def beta(hardware: Hardware) -> Figure:
    """Where a sweep of the pools has the shortest step, beside the β of the formula."""
    shape, trace = _work()
    rows, series = [], []
    for what, method in _SETS.items():
        speeds = setting.rates(hardware, shape, method)
        curve = [1e3 * pools.step_of(hardware, shape, trace, pool, method) for pool in _POOLS]
        series.append(Series(what, [beta_of(pool) for pool in _POOLS], curve))
        least = _least(hardware, shape, trace, method, curve)
        shortest = pools.step_of(hardware, shape, trace, least, method)
        for formula, pool in (
            ("α of each side as recorded", pools.balanced_pool(speeds, shape, trace)),
            ("one α for both sides, as in the paper", pools.plain_pool(speeds, runs.PAPER_LOW.alpha)),
        ):
            there = pools.step_of(hardware, shape, trace, pool, method)
            moved = hangs_on(hardware, partial(_beta, shape=shape, trace=trace, method=method), 1)
            longer = f"a step at the formula's β is {there / shortest - 1:.1%} longer than the shortest"
            rows.append(
                Row(
                    f"β of the shortest step over the formula's {beta_of(pool):.2f} ({formula}); {what}",
                    beta_of(least) / beta_of(pool),
                    "× the formula's β",
                    ALL["beta"],
                    f"{longer}; of the formula's β: {moved}",
                )
            )
    return Figure("beta", f"Step against β ({_MODEL}, batch {_BATCH})", rows, series, "β = M_c / M_s", "ms per step")


def waiting(hardware: Hardware) -> Figure:
    """How long the quicker of processor and SmartSSD waits for the slower one, by the pools."""
    shape, trace = _work()
    speeds = setting.rates(hardware, shape, HillInfer())
    balanced = pools.balanced_pool(speeds, shape, trace)
    rows = [
        Row(
            f"{what} (β = {beta_of(pool):.2f}): the quicker path waits",
            100 * pools.times(speeds, shape, trace, pool).error,
            "% of the slower one's time",
            ALL["waiting"],
        )
        for what, pool in (
            ("10 % of the KV in DRAM", 0.1),
            ("half of it", 0.5),
            ("nearly all of it", 0.95),
            ("β of the formula, α of each side as recorded", balanced),
        )
    ]
    waits = [100 * pools.times(speeds, shape, trace, pool).error for pool in _POOLS]
    series = [Series("the quicker path waits", [beta_of(pool) for pool in _POOLS], waits)]
    return Figure("waiting", "Waiting for the slower path", rows, series, "β = M_c / M_s", "of the slower path, %")


def _work() -> tuple[Shape, Trace]:
    shape = named(_MODEL)
    return shape, setting.work(runs.PAPER_LOW, shape, _BATCH)


def _beta(hardware: Hardware, shape: Shape, trace: Trace, method: HillInfer) -> float:
    return beta_of(pools.balanced_pool(setting.rates(hardware, shape, method), shape, trace))


def _least(hardware: Hardware, shape: Shape, trace: Trace, method: HillInfer, curve: list[float]) -> float:
    """The pool with the shortest step, between the points of the curve too."""
    best = min(range(len(curve)), key=curve.__getitem__)
    low, high = _POOLS[max(0, best - 1)], _POOLS[min(len(curve) - 1, best + 1)]
    finer = [low + (high - low) * each / 10 for each in range(11)]
    return min(finer, key=lambda pool: pools.step_of(hardware, shape, trace, pool, method))
