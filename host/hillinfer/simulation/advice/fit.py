"""Milliseconds per token of HillInfer and its rivals, by context and batch, with what fits of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hillinfer.errors import MemoryBudgetError, SettingError, nearest
from hillinfer.simulation.advice.tiers import Tiers, tiers
from hillinfer.simulation.gpu_room import gpu_room
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.methods.full import Full
from hillinfer.simulation.methods.hillinfer import HillInfer
from hillinfer.simulation.methods.kept import Kept
from hillinfer.simulation.methods.retrieval import Retrieval
from hillinfer.simulation.paper import runs, setting
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import Shape
from hillinfer.simulation.trace import Trace

_Way = tuple[str, Method, Trace]
"""Where the KV lies, the method, and the run that it does."""


@dataclass(frozen=True)
class Cell:
    """One method at one context and batch.

    ms     of a step: every sequence of the batch gets a token; None where it does not fit
    where  the KV lies, for people; why: it does not fit
    """

    method: str
    context: int
    batch: int
    tiers: Tiers
    ms: float | None = None
    where: str = ""
    why: str = ""


def fit(
    hardware: Hardware, shape: Shape, contexts: Sequence[int], batches: Sequence[int], methods: Sequence[str] = ()
) -> list[Cell]:
    """Every context, batch and method. MemoryBudgetError, which says what would fit, if nothing does."""
    chosen = list(methods) or list(METHODS)
    for name in chosen:
        if name not in METHODS:
            raise SettingError(f"there is no method {name!r}{nearest(name, list(METHODS))}")
    check_weights(hardware, shape)
    cells = [
        cell(hardware, shape, name, context, batch) for context in contexts for batch in batches for name in chosen
    ]
    if all(each.ms is None for each in cells):
        raise MemoryBudgetError(_too_small(hardware, shape, chosen, min(contexts), min(batches), cells[0].why))
    return cells


def check_weights(hardware: Hardware, shape: Shape) -> None:
    """MemoryBudgetError for a model whose weights alone are more than the box holds."""
    weights = shape.weights + shape.head_weights
    room = hardware.dram.capacity + (0.0 if hardware.gpu is None else gpu_room(hardware.gpu, shape))
    if weights >= room:
        raise MemoryBudgetError(
            f"the weights of {shape.name} are {weights / 1e9:.1f} GB and the box {hardware.name} holds "
            f"{room / 1e9:.1f} GB in memory: take a smaller model, or at least "
            f"{math.floor((weights - room + hardware.dram.capacity) / 1e9) + 1} GB of DRAM"
        )


def cell(hardware: Hardware, shape: Shape, name: str, context: int, batch: int) -> Cell:
    """The fastest way in which a method serves this."""
    there = tiers(hardware, shape, context, batch)
    blank = Cell(name, context, batch, there, why="no room for the KV cache")
    best = blank
    for where, method, trace in METHODS[name](hardware, shape, context, batch, there):
        try:
            ms = 1e3 * simulate(hardware, shape, method, trace).mean_step
        except (MemoryBudgetError, SettingError) as error:
            best = replace(best, why=str(error)) if best.ms is None else best
            continue
        if best.ms is None or ms < best.ms:
            best = replace(blank, ms=ms, where=where, why="")
    return best


# ---- the ways of each method; those that do not fit say so when they are timed


def _all_hot(trace: Trace) -> Trace:
    """The same run with all of the KV in DRAM: nothing is cold, and nothing moves."""
    steps = [
        [
            replace(
                work, hot_rows=work.hot_rows + work.cold_rows, cold_rows=0, cold_requests=0, read_rows=0, moved_rows=0
            )
            for work in step
        ]
        for step in trace.steps
    ]
    return replace(trace, steps=steps, settings={**trace.settings, "hot": 1.0})


def _hillinfer(hardware: Hardware, shape: Shape, context: int, batch: int, there: Tiers) -> Iterator[_Way]:
    for hot, trace in _pools(shape, context, batch, there):
        yield f"{hot:.0%} in DRAM, all on the drive", _ours(hardware, shape, trace, hot), trace


def _pools(shape: Shape, context: int, batch: int, there: Tiers) -> Iterator[tuple[float, Trace]]:
    """Runs with ever larger pools, as large as there is DRAM for."""
    pools = [setting.work(run.near(context), shape, batch, context) for run in runs.POOLS]
    for trace in [*pools, _all_hot(pools[-1])]:
        if (hot := float(trace.settings["hot"])) <= there.hot_share:
            yield hot, trace


def _ours(hardware: Hardware, shape: Shape, trace: Trace, hot: float) -> HillInfer:
    if hardware.smartssd is None or hardware.gpu is None:
        return HillInfer(hot_share=hot)
    return replace(setting.ours(hardware, shape, trace), hot_share=hot)


def _full(hardware: Hardware, shape: Shape, context: int, batch: int, there: Tiers) -> Iterator[_Way]:  # noqa: ARG001
    trace = setting.average_work(runs.PAPER_LOW.near(context), shape, batch, context)
    yield "all where it is computed", Full("device"), trace
    yield "all in DRAM", Full("dram"), trace
    last = context + runs.LONG_STEPS  # what is decoded has room, too
    share = math.floor(100 * there.hot_share * context / last) / 100
    yield f"{share:.0%} in DRAM, the rest on the drive", Full("drive", share=1 - share), trace


def _h2o(hardware: Hardware, shape: Shape, context: int, batch: int, there: Tiers) -> Iterator[_Way]:  # noqa: ARG001
    trace = setting.average_work(runs.PAPER_LOW.near(context), shape, batch, context)
    for tier, where in (("device", "where it is computed"), ("dram", "in DRAM"), ("drive", "on the drive")):
        yield f"20 % kept, {where}; the rest dropped", Kept(0.2, tier, policy="h2o"), trace


def _retrieval(policy: str, index: float, chunk: int, whole: int, *, ahead: bool) -> Callable[..., Iterator[_Way]]:
    def ways(hardware: Hardware, shape: Shape, context: int, batch: int, there: Tiers) -> Iterator[_Way]:
        if hardware.gpu is None and hardware.software is not None:  # this project's engine, whose pools are HillInfer's
            for hot, trace in _pools(shape, context, batch, there):
                method = Retrieval(index, chunk, whole=whole, ahead=ahead, in_dram=hot, policy=policy)
                yield f"{hot:.0%} in DRAM, all on the drive", method, trace
            return
        trace = setting.average_work(runs.PAPER_LOW.near(context), shape, batch, context)
        most = max(0.0, min(1.0, (there.dram_free - there.kv * index / 2) / there.kv))
        for eighths in range(int(8 * most) + 1):  # bringing some from the drive beside the rest may be the quickest
            method = Retrieval(index, chunk, whole=whole, ahead=ahead, in_dram=eighths / 8)
            yield f"{eighths / 8:.0%} in DRAM, all on the drive", method, trace

    return ways


METHODS: dict[str, Callable[[Hardware, Shape, int, int, Tiers], Iterator[_Way]]] = {
    "hillinfer": _hillinfer,
    "full": _full,
    "h2o": _h2o,
    "leoam": _retrieval("leoam", 2 / 32, 32, 0, ahead=False),
    "infinigen": _retrieval("infinigen", 0.2, 1, 2, ahead=True),
}
"""Each by the ways in which it may lay out the KV; the fastest that fits is taken. Retrieval is of 10 %."""


# ---- what would fit


def longest(hardware: Hardware, shape: Shape, method: str, batch: int) -> int:
    """The longest context in steps of 1024 tokens that a method serves; 0 for none up to 16 M tokens."""
    low, high = 0, 1 << 14
    while low < high:
        middle = (low + high + 1) // 2
        if cell(hardware, shape, method, middle * 1024, batch).ms is None:
            high = middle - 1
        else:
            low = middle
    return low * 1024


def _too_small(
    hardware: Hardware, shape: Shape, methods: Sequence[str], context: int, batch: int, why: str
) -> str:  # fmt: skip
    best = max(methods, key=lambda name: longest(hardware, shape, name, batch))
    tokens = longest(hardware, shape, best, batch)
    would = f"{best} serves up to {tokens:,} tokens there" if tokens else "no context of 1,024 tokens does either"
    return f"{context:,} tokens of {shape.name} at batch {batch} do not fit the box {hardware.name} ({why}): {would}"
