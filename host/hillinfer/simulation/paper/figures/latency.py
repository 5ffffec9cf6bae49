"""End-to-end latency and speedup of HillInfer by model and batch, extreme batches, and what each part adds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial

from hillinfer.errors import HillInferError
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.methods.kept import Kept
from hillinfer.simulation.methods.registry import named as named_method
from hillinfer.simulation.methods.retrieval import Retrieval
from hillinfer.simulation.paper import runs, setting
from hillinfer.simulation.paper.figure import Figure, Row, Series
from hillinfer.simulation.paper.sensitivity import hangs_on
from hillinfer.simulation.paper.statements import ALL
from hillinfer.simulation.shape import named

_MODEL, _LARGEST = "opt-6.7b", setting.BATCHES[-1]


@dataclass(frozen=True)
class Point:
    """Seconds of a model, batch and method, end to end."""

    model: str
    batch: int
    method: str
    seconds: float


def _seconds(hardware: Hardware, model: str, batch: int, method: str, run: runs.Run = runs.PAPER_LOW) -> float:
    shape = named(model)
    trace = setting.work_of(method, run, shape, batch)
    return setting.generation(hardware, shape, method, trace).seconds


def _speedup(hardware: Hardware, model: str, batch: int, method: str) -> float:
    return _seconds(hardware, model, batch, method) / _seconds(hardware, model, batch, setting.OURS)


@cache
def _points(hardware: Hardware, run: runs.Run = runs.PAPER_LOW) -> tuple[Point, ...]:
    return tuple(
        Point(model, batch, method, _seconds(hardware, model, batch, method, run))
        for model in setting.MODELS
        for batch in setting.BATCHES
        for method in (setting.OURS, *setting.RIVALS)
    )


def _speedups(hardware: Hardware, run: runs.Run = runs.PAPER_LOW) -> dict[tuple[str, int, str], float]:
    seconds = {(each.model, each.batch, each.method): each.seconds for each in _points(hardware, run)}
    return {
        (model, batch, method): taken / seconds[model, batch, setting.OURS]
        for (model, batch, method), taken in seconds.items()
        if method != setting.OURS
    }


def _at_equal_mass(hardware: Hardware, name: str, budget: float) -> dict[tuple[str, int], float]:
    """Speedups over a rival that attends to another share, by model and batch."""
    method = named_method(name)
    assert isinstance(method, Kept | Retrieval)
    method = replace(method, budget=budget)
    found = {}
    for point in _points(hardware):
        if point.method == setting.OURS:
            shape = named(point.model)
            work = setting.average_work(runs.PAPER_LOW, shape, point.batch)
            theirs = setting.generation(hardware, shape, name, work, method).seconds
            found[point.model, point.batch] = theirs / point.seconds
    return found


def latency(hardware: Hardware) -> Figure:
    """Seconds of a batch's answers by method, and the two claims at batch 10."""
    of = partial(_seconds, model=_MODEL, batch=_LARGEST)
    rows = [
        Row(
            f"HillInfer, {_MODEL}, batch {_LARGEST}, α {run.alpha:.0%}, by a run of {run}",
            of(hardware, method=setting.OURS, run=run),
            "s",
            ALL["latency-ours"],
            hangs_on(hardware, partial(of, method=setting.OURS, run=run)),
        )
        for run in (runs.PAPER_LOW, runs.PAPER_HIGH, runs.PAPER_LOW.long, runs.PAPER_HIGH.long)
    ]
    rows += [
        Row(
            f"{what}, {_MODEL}, batch {_LARGEST}",
            of(hardware, method=method),
            "s",
            ALL["latency-theirs"],
            hangs_on(hardware, partial(of, method=method), 1),
        )
        for method, what in setting.RIVALS.items()
    ]
    rows += [
        Row(f"not the paper's: KV {where}, {_MODEL}, batch {_LARGEST}", of(hardware, method=method), "s")
        for method, where in (("full-dram", "all in DRAM"), ("full-device", "all on the GPU, weights as they fit"))
    ]
    series = [
        Series(
            method,
            setting.BATCHES,
            [each.seconds for each in _points(hardware) if (each.model, each.method) == (model, method)],
            model,
        )
        for model in setting.MODELS
        for method in (setting.OURS, *setting.RIVALS)
    ]
    return Figure(
        "latency",
        f"Latency of {runs.TOKENS} + {runs.STEPS} tokens",
        rows,
        series,
        "batch",
        "s",
        notes=["A prompt takes what the GPU's datasheet allows: a lower bound, the same for all methods."],
    )


def speedup(hardware: Hardware) -> Figure:
    """The least and the largest speedup over models, batches and rivals; and the range of each rival."""
    found = _speedups(hardware)
    least, most = min(found, key=found.__getitem__), max(found, key=found.__getitem__)
    rows = []
    for key, bound, reduced in ((least, "speedup-least", "reduction-least"), (most, "speedup-most", "reduction-most")):
        model, batch, method = key
        why = f"{setting.RIVALS[method]}, {model}, batch {batch}; " + hangs_on(
            hardware, partial(_speedup, model=model, batch=batch, method=method)
        )
        rows.append(Row(f"{bound.removeprefix('speedup-')} speedup of all", found[key], "×", ALL[bound], why))
        rows.append(
            Row(f"{bound.removeprefix('speedup-')} reduction", 100 * (1 - 1 / found[key]), "%", ALL[reduced], why)
        )
    longer = _speedups(hardware, runs.PAPER_LOW.long)
    for end, found_at in (
        ("least", min(longer, key=longer.__getitem__)),
        ("most", max(longer, key=longer.__getitem__)),
    ):
        why = f"{setting.RIVALS[found_at[2]]}, {found_at[0]}, batch {found_at[1]}; more is cold in a longer context"
        what = f"{end} speedup of all, by a run of {runs.PAPER_LOW.long}"
        rows.append(Row(what, longer[found_at], "×", ALL[f"speedup-{end}"], why))
    for method, what in setting.RIVALS.items():
        own = {(model, batch): value for (model, batch, each), value in found.items() if each == method}
        rows += _range(f"over {what}", own)
    for method, budget in setting.EQUAL_MASS.items():
        what = f"over {setting.RIVALS[method]}, at HillInfer's captured mass ({budget:.1%} of the tokens)"
        rows += _range(what, _at_equal_mass(hardware, method, budget))
    series = [
        Series(method, setting.BATCHES, [found[model, batch, method] for batch in setting.BATCHES], model)
        for model in setting.MODELS
        for method in setting.RIVALS
    ]
    return Figure("speedup", "How much faster HillInfer is", rows, series, "batch", "× faster")


def _range(what: str, found: dict[tuple[str, int], float]) -> list[Row]:
    """The least and the largest of speedups by model and batch."""
    ends = (("least", min(found, key=found.__getitem__)), ("most", max(found, key=found.__getitem__)))
    return [Row(f"{what}: {end}", found[at], "×", ALL["speedup-range"], f"{at[0]}, batch {at[1]}") for end, at in ends]


def extreme(hardware: Hardware) -> Figure:
    """Batches of 20 and 25, where they fit; what does not fit is said."""
    rows, notes = [], []
    for model in setting.MODELS:
        for batch in setting.EXTREME:
            for method in (setting.OURS, "full-device", *setting.RIVALS):
                try:
                    seconds = _seconds(hardware, model, batch, method)
                except HillInferError as error:
                    notes.append(f"{model}, batch {batch}, {method}: {error}")
                    continue
                statement = ALL["extreme"] if method == setting.OURS else None
                rows.append(Row(f"{method}, {model}, batch {batch}", seconds, "s", statement))
    return Figure("extreme", "Extreme batches", rows, notes=notes)


def ablation(hardware: Hardware) -> Figure:
    """What each part takes off a step: HKM, APP's overlap, the balance, and INT8 keys in the card's memory."""
    shape = named(_MODEL)
    trace = setting.work(runs.PAPER_LOW, shape, _LARGEST)
    whole = setting.ours(hardware, shape, trace)
    thrashing = setting.thrashing(trace, runs.PAPER_LOW)
    half = replace(whole, host_share=0.5, ahead=False)
    parts = (
        ("HIE alone, FP16 keys from the drive", replace(half, key_bytes=2.0, streamed=True, hkm=False), thrashing),
        ("+ CEC: INT8 keys in the card's memory", replace(half, hkm=False), thrashing),
        ("+ HKM: placed by history", half, trace),
        ("+ APP: the balance", replace(whole, ahead=False), trace),
        ("+ APP: one layer ahead", whole, trace),
    )
    rows = []
    for what, method, run in parts:
        seconds = setting.generation(hardware, shape, setting.OURS, run, method).seconds
        rows.append(Row(f"{what}, {_MODEL}, batch {_LARGEST}", seconds, "s", ALL["ablation"]))
    line = Series("HillInfer", list(range(1, len(rows) + 1)), [row.ours for row in rows])
    return Figure(
        "ablation", "What each part adds", rows, [line], "parts", "s", ticks=["HIE", "+ CEC", "+ HKM", "+ β", "+ ahead"]
    )
