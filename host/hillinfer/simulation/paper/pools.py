"""The recorded run with a pool of another size, and the balance that the paper's formula gives it.

In the paper β is the ratio of the pools: what is in DRAM the host scores, what is on the drive the card does. How many
of the selected rows are in the pool is not α times its size, as recent and frequent tokens are there: it is taken from
recorded runs with pools of 12.5, 20, 40 and 80 % of the KV, by straight lines between them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hillinfer.calibration.rates import Rates, Shares, Times, beta_two_hop, share_of
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.methods.hillinfer import HillInfer
from hillinfer.simulation.paper import runs, setting
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import Shape
from hillinfer.simulation.trace import LayerStep, Trace


def hit_rate(pool: float) -> float:
    """The share of selected rows below the GPU that a pool of this share of the KV has."""
    pools = [0.0, *(run.hot for run in runs.POOLS), 1.0]
    hits = [0.0, *(float(runs.recorded(run).settings["hot_hit_rate"]) for run in runs.POOLS), 1.0]
    return float(np.interp(pool, pools, hits))


def with_pool(trace: Trace, pool: float) -> Trace:
    """A trace of ``runs.PAPER_LOW`` as it would have been with this pool.

    What becomes fewer, hot rows or cold ones, becomes so by the same factor in every layer and step: those that read
    more than others go on to do so.
    """
    works = [work for step in trace.steps for work in step]
    hot, cold = sum(work.hot_rows for work in works), sum(work.cold_rows for work in works)
    wanted = (1 - hit_rate(pool)) * (hot + cold)

    def placed(work: LayerStep) -> LayerStep:
        below = work.hot_rows + work.cold_rows
        if wanted > cold:
            cold_rows = below - round(work.hot_rows * (hot + cold - wanted) / hot)
        else:
            cold_rows = round(work.cold_rows * wanted / max(1, cold))
        factor = cold_rows / work.cold_rows if work.cold_rows else 0.0
        requests = round(factor * work.cold_requests) if factor else cold_rows
        return replace(
            work,
            hot_rows=below - cold_rows,
            cold_rows=cold_rows,
            cold_requests=max(min(1, cold_rows), min(cold_rows, requests)),
            read_rows=max(cold_rows, round(factor * work.read_rows)),
        )

    return replace(trace, steps=[[placed(work) for work in step] for step in trace.steps])


def times(speeds: Rates, shape: Shape, trace: Trace, pool: float) -> Times:
    """T_cpu and T_csd of a layer's step: equations 2 and 3, each side's α as recorded, cold rows in two hops."""
    work = setting.load(shape, trace)
    cold = (work.hot + work.cold) * (1 - hit_rate(pool))
    hot = work.hot + work.cold - cold
    cpu = pool * work.total / speeds.f_c + hot / speeds.b_c
    return Times(cpu, (1 - pool) * work.total / speeds.f_s + cold * (1 / speeds.b_s + 1 / speeds.b_c))


def balanced_pool(speeds: Rates, shape: Shape, trace: Trace) -> float:
    """The pool at which both paths end together, found by halving."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        both = times(speeds, shape, trace, middle)
        low, high = (middle, high) if both.cpu < both.csd else (low, middle)
    return (low + high) / 2


def plain_pool(speeds: Rates, alpha: float) -> float:
    """The same with one α for both sides: the paper's formula as it stands (equation 4, two hops)."""
    return share_of(beta_two_hop(speeds, Shares.even(alpha)))


def step_of(hardware: Hardware, shape: Shape, trace: Trace, pool: float, method: HillInfer) -> float:
    """Seconds of a step on average with this pool, the host scoring what is in it."""
    method = replace(method, host_share=pool)
    return simulate(hardware, shape, method, with_pool(trace, pool)).mean_step
