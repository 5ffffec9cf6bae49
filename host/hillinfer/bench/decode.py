"""Decoding beside the stock cache: quality (KL to the full cache), speed, and what the tiers held.

Teacher-forced: after a prompt of real text every method is given the same next tokens, so that its distributions can be
compared step by step with those of the full cache, and its steps timed on the same contexts in the same run.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from hillinfer.bench.divergence import divergence, share_right
from hillinfer.config import Budget, StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.integrations.transformers import CacheStats, HillInferCache
from hillinfer.policies import HillInfer, Policy

_CHUNK = 512


@dataclass(frozen=True)
class Case:
    """A method to run: its label, its policy (None: the stock cache) and its DRAM budget."""

    label: str
    policy: Policy | None = None
    hot: str = "20%"


STOCK = Case("stock DynamicCache")


def cases(alpha: float) -> list[Case]:
    """The stock cache first; the product's default; the paper's ranking; a set per head; everything in DRAM."""
    return [
        STOCK,
        Case(f"hillinfer α={alpha:g}", HillInfer(alpha=alpha)),
        Case(f"raw sum (paper) α={alpha:g}", HillInfer(alpha=alpha, reduce="sum")),
        Case(f"a set per KV head α={alpha:g}", HillInfer(alpha=alpha, scope="head")),
        Case(f"hillinfer α={alpha:g}, hot 102%", HillInfer(alpha=alpha), "102%"),
    ]


@dataclass
class Row:
    """One method, over all passages: means, but for times, which are medians over all steps.

    kl           KL(full cache ‖ method) per token, nats; agreement: share of steps with the same likeliest token
    """

    label: str
    kl: float
    kl_per_passage: list[float]
    agreement: float
    decode_ms: float
    prefill_tokens_per_s: float
    hot_hit_rate: float | None
    moved_fraction: float | None
    hot_peak_bytes: int
    cold_bytes: int
    cold_read_bytes_per_token: float


@dataclass
class _Run:
    logprobs: torch.Tensor
    step_seconds: list[float]
    prefill_tokens_per_s: float
    stats: CacheStats | None


def passages(tokens: torch.Tensor, length: int, count: int) -> list[torch.Tensor]:
    """``count`` windows [1, length] spread over a text's tokens [n]."""
    last = len(tokens) - length
    starts = [last * i // max(1, count - 1) for i in range(count)]
    return [tokens[None, start : start + length] for start in starts]


def compare(
    model: PreTrainedModel,
    texts: list[torch.Tensor],
    steps: int,
    chosen: list[Case],
    cold_dir: Path | None,
    on_progress: Callable[[str], None],
) -> list[Row]:
    """Every case on every text [1, N], the last ``steps`` tokens of which are decoded; rows in the order of cases."""
    runs: dict[str, list[tuple[_Run, torch.Tensor]]] = {case.label: [] for case in chosen}
    for number, text in enumerate(texts, 1):
        reference: torch.Tensor | None = None
        for case in chosen:
            on_progress(f"passage {number} of {len(texts)}: {case.label}")
            run = _run(model, text, steps, case, cold_dir)
            reference = run.logprobs if reference is None else reference
            runs[case.label].append((run, reference))
    return [_row(case.label, runs[case.label]) for case in chosen]


def _run(model: PreTrainedModel, text: torch.Tensor, steps: int, case: Case, cold_dir: Path | None) -> _Run:
    prompt = text.shape[1] - steps
    keyword = cache_keyword(model)
    with _cache(model, case, cold_dir) as cache, torch.inference_mode():
        if case.policy is not None:
            cache.prompt_length = prompt
            cache.expect(text.shape[1])
        start = time.perf_counter()
        for begin in range(0, prompt, _CHUNK):
            model(text[:, begin : min(begin + _CHUNK, prompt)], logits_to_keep=1, **{keyword: cache})
        prefill = prompt / (time.perf_counter() - start)
        logprobs, seconds = [], []
        for position in range(prompt, text.shape[1]):
            start = time.perf_counter()
            out = model(text[:, position : position + 1], **{keyword: cache})
            seconds.append(time.perf_counter() - start)
            logprobs.append(out.logits[0, -1].float().log_softmax(-1))
        stats = cache.stats() if case.policy is not None else None
    return _Run(torch.stack(logprobs), seconds, prefill, stats)


def _cache(model: PreTrainedModel, case: Case, cold_dir: Path | None) -> Any:
    if case.policy is None:
        model.set_attn_implementation("sdpa")  # what a user of the stock cache runs
        return contextlib.nullcontext(DynamicCache(config=model.config))
    store = StoreSettings(hot_bytes=Budget.parse(case.hot), cold_dir=cold_dir)
    return HillInferCache(model, case.policy, store=store)


def _row(label: str, runs: list[tuple[_Run, torch.Tensor]]) -> Row:
    divergences = [divergence(ref, run.logprobs) for run, ref in runs]
    same = [share_right(run.logprobs, ref.argmax(-1)) for run, ref in runs]
    seconds = [second for run, _ in runs for second in run.step_seconds]
    stats = [run.stats for run, _ in runs if run.stats is not None]
    tokens = len(seconds) / len(runs)
    return Row(
        label,
        statistics.mean(divergences),
        divergences,
        statistics.mean(same),
        statistics.median(seconds) * 1e3,
        statistics.mean(run.prefill_tokens_per_s for run, _ in runs),
        _mean(stat.hot_hit_rate for stat in stats),
        _mean(stat.moved_fraction for stat in stats),
        max((stat.tiers.hot.peak_bytes for stat in stats), default=0),
        max((stat.tiers.cold.bytes for stat in stats), default=0),
        statistics.mean(stat.cold_read_bytes / tokens for stat in stats) if stats else 0.0,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None


def summary(rows: list[Row]) -> dict[str, float | None]:
    """The figures the project holds itself to, as ratios within this run."""
    stock, ours, raw = rows[0], rows[1], rows[2]
    return {
        "kl": ours.kl,
        "kl_raw_sum": raw.kl,
        "kl_over_raw_sum": ours.kl / raw.kl,
        "decode_ratio": ours.decode_ms / stock.decode_ms,
        "decode_ratio_all_in_dram": rows[-1].decode_ms / stock.decode_ms,
        "prefill_ratio": stock.prefill_tokens_per_s / ours.prefill_tokens_per_s,
        "hot_hit_rate": ours.hot_hit_rate,
        "moved_fraction": ours.moved_fraction,
    }


def as_dict(rows: list[Row], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings, rows and summary, ready for JSON."""
    return {"benchmark": "decode", **settings, "rows": [asdict(row) for row in rows], "summary": summary(rows)}
