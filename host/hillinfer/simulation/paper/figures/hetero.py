"""HeteroCache's efficiency on the timing model: decode latency to 224K tokens, the first token, the drift threshold."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any

from hillinfer.profiling.budgets import base_length
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.hardware import load as load_box
from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.methods.full import Full
from hillinfer.simulation.methods.heterocache import HeteroCache
from hillinfer.simulation.paper import runs
from hillinfer.simulation.paper.figure import Figure, Row, Series
from hillinfer.simulation.paper.sensitivity import hangs_on
from hillinfer.simulation.paper.statements import ALL
from hillinfer.simulation.prefill import prefill_seconds
from hillinfer.simulation.recorded_run import stock_trace
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import named
from hillinfer.simulation.trace import LayerStep

_MODEL = "llama-3.1-8b"
_K = 1024
LENGTHS = tuple(each * _K for each in range(32, 225, 32))
_BUDGET = 0.5
_STEPS = 3  # the second one waits for what the first ordered
PIVOTS, SATELLITES, VOLATILE, ANCHORS = 33, 196, 17, 10
"""KV heads of Llama-3.1-8B-Instruct by role, from the authors' analysis (github.com/ponytaill/HeteroCache,
data/clusters, thresholds 0.5 and 0.5; Apache-2.0)."""
_HEADS = PIVOTS + SATELLITES + VOLATILE + ANCHORS
_SHARE = SATELLITES / _HEADS


@dataclass(frozen=True)
class Growing(Full):
    """A stock cache that makes a new tensor per token: all it has is read and written once more."""

    tier: str = "device"

    def attend(self, at: Machine, work: LayerStep, layer: int) -> Steps:  # noqa: ARG002
        yield at.attend(3 * work.tokens)


def _step(hardware: Hardware, tokens: int, method: Method) -> float:
    shape = named(_MODEL)
    return simulate(hardware, shape, method, stock_trace(_MODEL, shape.layers, tokens, _STEPS)).median_step


def _speedup(hardware: Hardware, *, original: Method, budget: float) -> float:
    return _step(hardware, LENGTHS[-1], original) / _step(hardware, LENGTHS[-1], HeteroCache(budget, _SHARE))


def decode(_hardware: Hardware) -> Figure:
    """A step of Llama-3.1-8B at 32K to 224K tokens; the original's cache in place, and as transformers grows it."""
    box = load_box("a100-80g")
    least = _least_budget()
    originals = {"in place": Full("device"), "a new tensor per token": Growing()}
    rows = []
    for what, original in originals.items():
        for budget in (_BUDGET, least):
            result = partial(_speedup, original=original, budget=budget)
            rows.append(
                Row(
                    f"budget {budget:.0%}, the original's cache {what}, 224K tokens",
                    result(box),
                    "×",
                    ALL["hetero-decode"],
                    f"the budget and how the original keeps its cache, more than the GPU: {hangs_on(box, result, 1)}",
                )
            )
    methods: dict[str, Method] = {
        **{f"original, {what}": original for what, original in originals.items()},
        **{f"HeteroCache, {budget:.0%}": HeteroCache(budget, _SHARE) for budget in (_BUDGET, least)},
    }
    series = [
        Series(what, [tokens // _K for tokens in LENGTHS], [1e3 * _step(box, tokens, method) for tokens in LENGTHS])
        for what, method in methods.items()
    ]
    notes = [
        f"{_HEADS} KV heads: {PIVOTS} pivots, {SATELLITES} satellites, {VOLATILE} volatile, {ANCHORS} anchors, as the "
        "authors publish them; a budget of 50 % is that of their latency script.",
        "Which GPU the paper used is not known to us; byte counts bound the speedup whatever it is.",
    ]
    return Figure("hetero-decode", f"HeteroCache: a decode step ({_MODEL})", rows, series, "K tokens", "ms", notes)


def _least_budget() -> float:
    """The smallest whole percentage that leaves the compressed heads anything at 224K tokens."""
    whole = PIVOTS + VOLATILE
    for percent in range(int(100 * whole / _HEADS) + 1, 101):
        if base_length(percent / 100, LENGTHS[-1], _HEADS, whole) > 0:
            return percent / 100
    raise AssertionError("a budget of everything leaves something")


def first_token(_hardware: Hardware) -> Figure:
    """The prompt of Llama-3.1-8B: the same products for both; HeteroCache's satellites leave the GPU meanwhile."""
    box, shape = load_box("a100-80g"), named(_MODEL)
    original, ours = [], []
    for tokens in LENGTHS:
        kv = tokens * shape.token_bytes
        original.append(prefill_seconds(box, shape, tokens=tokens, sequences=1, on_device=kv))
        # the prompt is attended whole: all of it is on the GPU until it is over
        ours.append(prefill_seconds(box, shape, tokens=tokens, sequences=1, on_device=kv, to_dram=_SHARE * kv))
    rows = [
        Row(f"{what}, 224K tokens", seconds[-1], "s", statement)
        for what, seconds, statement in (
            ("original", original, None),
            ("HeteroCache", ours, ALL["hetero-first-token"]),
        )
    ]
    rows.append(
        Row(
            "HeteroCache over the original",
            ours[-1] / original[-1],
            "×",
            ALL["hetero-first-token"],
            "moving satellites hides behind the products: " + hangs_on(box, _prefill_224k, 1),
        )
    )
    lengths = [tokens // _K for tokens in LENGTHS]
    series = [Series("original", lengths, original), Series("HeteroCache", lengths, ours)]
    return Figure("hetero-first-token", "HeteroCache: the first token", rows, series, "K tokens", "s")


def _prefill_224k(box: Hardware) -> float:
    return prefill_seconds(box, named(_MODEL), tokens=LENGTHS[-1], sequences=1)


THRESHOLDS_FILE = "heterocache-thresholds.json"


@cache
def recorded_thresholds() -> dict[str, Any]:
    """Drifts and refills by threshold, as they were counted in runs of the engine."""
    own = runs.folder() / THRESHOLDS_FILE
    if own.is_file():
        text = own.read_text()
    else:
        text = (resources.files("hillinfer.simulation.paper") / "recorded" / THRESHOLDS_FILE).read_text()
    content: dict[str, Any] = json.loads(text)
    return content


def threshold(_hardware: Hardware) -> Figure:
    """How often satellites are refilled by the drift threshold, counted; and what that is of a step at 224K."""
    box, counted = load_box("a100-80g"), recorded_thresholds()
    quiet = _step(box, LENGTHS[-1], HeteroCache(_BUDGET, _SHARE))
    rows, xs, shares, times = [], [], [], []
    for each in counted["rows"]:
        refilled = each["refills"] / (each["steps"] * counted["satellites"])
        step = _step(box, LENGTHS[-1], HeteroCache(_BUDGET, _SHARE, refilled))
        xs.append(each["threshold"])
        shares.append(100 * refilled)
        times.append(1e3 * step)
        why = f"counted on {counted['model']}; a step at 224K takes {step / quiet:.2f} × one without refills"
        what = f"threshold {each['threshold']:g}: satellites refilled per step"
        rows.append(Row(what, 100 * refilled, "% of them", ALL["hetero-threshold"], why))
    series = [Series("refilled per step, %", xs, shares), Series("ms per step at 224K", xs, times)]
    return Figure("hetero-threshold", "HeteroCache: the drift threshold", rows, series, "threshold", "% and ms")
