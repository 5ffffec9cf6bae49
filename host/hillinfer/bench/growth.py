"""How the cost of a token grows with the context: the stock cache and HillInfer, on contexts that grow as they run."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedModel

from hillinfer.bench import steps, stock_caches
from hillinfer.bench.steps import Decoding
from hillinfer.bench.synthetic import lengthen
from hillinfer.bench.timing import in_turns, median_ms, p95_ms
from hillinfer.config import Budget, StoreSettings
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import HillInfer

_ROUNDS, _BLOCK = 3, 6
BASE = 64
"""Tokens of the context whose step is the model's own work, next to nothing of it attention."""


@dataclass
class GrowthRow:
    """One method at one (synthetic) context: a step, and what the context adds to it."""

    context: int
    label: str
    ms: float
    p95_ms: float
    added_ms: float | None = None


@dataclass(frozen=True)
class Fit:
    """ms ≈ factor · tokens^exponent, by least squares of logarithms, of what the context adds.

    None where a context adds nothing that can be measured.

    error    standard error of the exponent, by how far the contexts lie from the line; None for less than three of them
    points   contexts that count: those that add something measurable
    """

    label: str
    exponent: float | None
    factor: float | None
    error: float | None
    points: int


def run(
    model: PreTrainedModel,
    ids: torch.Tensor,
    contexts: Sequence[int],
    alpha: float,
    cold_dir: Path | None,
    on_progress: Callable[[str], None],
) -> list[GrowthRow]:
    """Steps at ``BASE`` and all contexts, everything in DRAM; the next token is always of the text int64 [n]."""
    store = StoreSettings(hot_bytes=Budget.parse("102%"), cold_dir=cold_dir)
    rows = []
    with HillInferCache(model, HillInfer(alpha=alpha), store=store) as ours:
        ours.expect(max(contexts) + _ROUNDS * (_BLOCK + 1) * (len(contexts) + 1))
        running = [
            Decoding(steps.STOCK, model, stock_caches.dynamic(model), "sdpa", ids),
            Decoding(f"hillinfer α={alpha:g}", model, ours, NAME, ids),
        ]
        base: list[float] = []
        for context in [BASE, *sorted(contexts)]:
            for each in running:
                on_progress(f"{context} tokens: filling {each.label}")
                lengthen(each.cache, model, context)
            times = in_turns(
                running,
                rounds=_ROUNDS,
                block=_BLOCK,
                on_progress=lambda doing, n=context: on_progress(f"{n} tokens, {doing}"),  # type: ignore[misc]
            )
            for number, (each, seconds) in enumerate(zip(running, times, strict=True)):
                row = GrowthRow(context, each.label, median_ms(seconds), p95_ms(seconds))
                if context == BASE:
                    base.append(row.ms)
                else:
                    row.added_ms = row.ms - base[number]
                rows.append(row)
    return rows


def fits(rows: Sequence[GrowthRow]) -> list[Fit]:
    """The exponent of each method."""
    found = []
    for label in dict.fromkeys(row.label for row in rows):
        points = [
            (math.log(row.context), math.log(row.added_ms))
            for row in rows
            if row.label == label and row.added_ms is not None and row.added_ms > 0
        ]
        found.append(_fit(label, points))
    return found


def _fit(label: str, points: Sequence[tuple[float, float]]) -> Fit:
    """Of logarithms of tokens and milliseconds."""
    count = len(points)
    if count < 2:
        return Fit(label, None, None, None, count)
    at, cost = np.array(points).T
    exponent, offset = np.polyfit(at, cost, 1).tolist()
    off = cost - exponent * at - offset
    freedom = count - 2
    error = math.sqrt(float(off @ off) / freedom / float(((at - at.mean()) ** 2).sum())) if freedom else None
    return Fit(label, exponent, math.exp(offset), error, count)


def as_dict(rows: Sequence[GrowthRow], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings, rows and fits, ready for JSON."""
    return {
        "benchmark": "growth",
        **settings,
        "synthetic": True,
        "rows": [asdict(row) for row in rows],
        "fits": [asdict(fit) for fit in fits(rows)],
        "summary": {},
    }
