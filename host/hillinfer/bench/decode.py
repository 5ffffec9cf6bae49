"""Decoding beside the stock cache: speed at several contexts, quality, and how long a prompt takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench import prefill, quality, steps
from hillinfer.bench.bounds import Bound
from hillinfer.bench.steps import StepBench
from hillinfer.bench.texts import passages


@dataclass(frozen=True)
class Plan:
    """What to measure.

    contexts    lengths of real context, in tokens; the shortest one is what the others are held against
    synthetic   lengths of synthetic context
    alphas      shares of the tokens attended; alpha: the one whose ratios count
    hot         DRAM budget of the lines with a part of the KV in DRAM
    tokens      context of quality and prefill, its ``decoded`` last tokens included; passages: texts for quality
    """

    contexts: Sequence[int] = (64, 1024, 4096, 8192)
    synthetic: Sequence[int] = (32768,)
    alphas: Sequence[float] = (1.0, 0.2, 0.1, 0.05)
    alpha: float = 0.1
    hot: str = "20%"
    tokens: int = 8192
    decoded: int = 64
    passages: int = 3

    @property
    def longest(self) -> int:
        """Tokens of text it takes."""
        return max([*(each + steps.STEPS for each in self.contexts), self.tokens])


@dataclass
class Result:
    """Rows of the three parts."""

    speed: list[steps.StepRow] = field(default_factory=list)
    quality: list[quality.QualityRow] = field(default_factory=list)
    prefill: list[prefill.PrefillRow] = field(default_factory=list)


def run(
    model: PreTrainedModel, ids: torch.Tensor, plan: Plan, cold_dir: Path | None, on_progress: Callable[[str], None]
) -> Result:
    """All of it, on a text's tokens int64 [n]."""
    result = Result()
    bench = StepBench(model, ids, cold_dir, on_progress)
    for context in sorted(plan.contexts):
        bench.measure(context, steps.all_cases(plan.alphas, plan.alpha, plan.hot))
    for context in sorted(plan.synthetic):
        bench.measure(context, steps.few_cases(plan.alpha, plan.hot), synthetic_context=True)
    result.speed = bench.rows
    if plan.passages:
        prompt = ids[None, : plan.tokens]
        result.prefill = prefill.compare(model, prompt, plan.alpha, plan.hot, cold_dir, on_progress)
        texts = passages(ids, plan.tokens, plan.passages)
        chosen = quality.methods(plan.alpha)
        result.quality = quality.compare(model, texts, plan.decoded, chosen, plan.hot, cold_dir, on_progress)
    return result


def summary(result: Result, plan: Plan) -> dict[str, float | None]:
    """The figures the project holds itself to, as ratios within this run; None for what it did not measure."""
    label = steps.ours(plan.alpha).label
    at_8k, at_32k = _row(result, 8192, label), _row(result, 32768, label)
    floor = bounds(result, plan).get("decode_8k_ratio")
    long = plan.tokens == 8192
    ours, raw = result.quality[:2] if long and result.quality else (None, None)
    stock, prompt = result.prefill if long and result.prefill else (None, None)
    return {
        "decode_8k_added_ratio": None if at_8k is None else at_8k.added_ratio,
        "decode_8k_ratio": None if at_8k is None else at_8k.ratio,
        "decode_8k_over_floor": None if floor is None else floor.distance,
        "decode_32k_ratio": None if at_32k is None else at_32k.ratio,
        "decode_8k_kl_over_raw_sum": None if ours is None or raw is None else ours.kl / raw.kl,
        "prefill_8k_ratio": None if prompt is None or stock is None else prompt.seconds / stock.seconds,
    }


def bounds(result: Result, plan: Plan) -> dict[str, Bound]:
    """What no cache can save: the model without attention, and a prompt's rows that have to be kept."""
    found = {}
    for figure, context in (("decode_8k_ratio", 8192), ("decode_32k_ratio", 32768)):
        rows = [_row(result, context, label) for label in (steps.STOCK, steps.ours(plan.alpha).label, steps.FLOOR)]
        stock, ours, floor = (None if row is None else row.ms for row in rows)
        if stock and ours and floor:
            found[figure] = Bound("a step of the model with attention left out", floor / stock, ours / floor)
    if plan.tokens == 8192 and result.prefill:
        stock_row, our_row = result.prefill
        least = stock_row.seconds + our_row.keeping_s
        what = "the stock cache's prompt, and putting its rows and scoring keys where they are kept"
        found["prefill_8k_ratio"] = Bound(what, least / stock_row.seconds, our_row.seconds / least)
    return found


def _row(result: Result, context: int, label: str) -> steps.StepRow | None:
    return next((row for row in result.speed if row.context == context and row.label == label), None)


def as_dict(result: Result, plan: Plan, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings, rows and summary, ready for JSON."""
    return {
        "benchmark": "decode",
        **settings,
        **asdict(plan),
        **asdict(result),
        "summary": summary(result, plan),
        "bounds": {figure: asdict(bound) for figure, bound in bounds(result, plan).items()},
    }
