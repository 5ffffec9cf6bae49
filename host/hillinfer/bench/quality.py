"""How far a method's distributions are from the full cache's, on real text, teacher-forced.

A passage is read by the model once and replayed into every method's cache; then all of them are given the same next
tokens, so that their distributions can be compared step by step.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench.divergence import divergence, share_right
from hillinfer.bench.means import mean_known
from hillinfer.config import Budget, StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.integrations.transformers import NAME, CacheStats, HillInferCache
from hillinfer.policies import HillInfer


@dataclass(frozen=True)
class Method:
    """Its label and policy, and which scoring copy it ranks by."""

    label: str
    policy: HillInfer
    scoring_copy: str = "auto"


def methods(alpha: float) -> list[Method]:
    """The product's default; the paper's ranking; a set per head."""
    return [
        Method(f"hillinfer α={alpha:g}", HillInfer(alpha=alpha)),
        Method(f"raw sum (paper) α={alpha:g}", HillInfer(alpha=alpha, reduce="sum")),
        Method(f"a set per KV head α={alpha:g}", HillInfer(alpha=alpha, scope="head")),
    ]


@dataclass
class QualityRow:
    """One method over all passages.

    kl           KL(full cache ‖ method) per token, nats; agreement: share of steps with the same likeliest token
    """

    label: str
    kl: float
    kl_per_passage: list[float]
    agreement: float
    hot_hit_rate: float | None
    moved_fraction: float | None
    hot_peak_bytes: int
    cold_bytes: int
    cold_read_bytes_per_token: float
    scoring_bytes: int


_Run = tuple[float, float, CacheStats]
"""Divergence, agreement, and what the cache did."""


def compare(
    model: PreTrainedModel,
    texts: list[torch.Tensor],
    steps: int,
    chosen: list[Method],
    hot: str,
    cold_dir: Path | None,
    on_progress: Callable[[str], None],
) -> list[QualityRow]:
    """Every method on every text [1, N], the last ``steps`` tokens of which are decoded; rows in the order given.

    hot   budget of the hot pool, of the whole KV
    """
    runs: list[list[_Run]] = [[] for _ in chosen]
    for number, text in enumerate(texts, 1):
        where = f"passage {number} of {len(texts)}"
        on_progress(f"{where}: reading it")
        record = PromptRecord(model, text[:, : text.shape[1] - steps])
        try:
            on_progress(f"{where}: the full cache")
            model.set_attn_implementation("sdpa")
            full = _decode(model, record.stock(), text, record.tokens)
            for method, mine in zip(chosen, runs, strict=True):
                on_progress(f"{where}: {method.label}")
                copy = method.scoring_copy
                store = StoreSettings(hot_bytes=Budget.parse(hot), cold_dir=cold_dir, scoring_copy=copy)
                with HillInferCache(model, method.policy, store=store) as cache:
                    cache.expect(text.shape[1])
                    record.replay(cache)
                    model.set_attn_implementation(NAME)
                    logprobs = _decode(model, cache, text, record.tokens)
                    mine.append(
                        (divergence(full, logprobs), share_right(logprobs, full.argmax(-1)), cache.stats()),
                    )
        finally:
            record.close()
    return [_row(method.label, mine, steps) for method, mine in zip(chosen, runs, strict=True)]


def _decode(model: PreTrainedModel, cache: Any, text: torch.Tensor, prompt: int) -> torch.Tensor:
    """Log-probabilities float32 [steps, vocabulary] of what follows the prompt."""
    keyword, logprobs = cache_keyword(model), []
    with torch.inference_mode():
        for position in range(prompt, text.shape[1]):
            out = model(text[:, position : position + 1], **{keyword: cache})
            logprobs.append(out.logits[0, -1].float().log_softmax(-1))
    return torch.stack(logprobs)


def _row(label: str, runs: list[_Run], steps: int) -> QualityRow:
    divergences = [each for each, _, _ in runs]
    stats = [each for _, _, each in runs]
    return QualityRow(
        label,
        statistics.mean(divergences),
        divergences,
        statistics.mean(same for _, same, _ in runs),
        mean_known(each.hot_hit_rate for each in stats),
        mean_known(each.moved_fraction for each in stats),
        max(each.tiers.hot.peak_bytes for each in stats),
        max(each.tiers.cold.bytes for each in stats),
        statistics.mean(each.cold_read_bytes / steps for each in stats),
        max(each.tiers.scoring.peak_bytes for each in stats),
    )
