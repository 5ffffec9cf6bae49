"""How long a prompt takes, beside the stock cache: chunk by chunk in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench import stock_caches
from hillinfer.config import Budget, StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import HillInfer

_CHUNK = 512


@dataclass
class PrefillRow:
    """tokens_per_s of the prompt; first_token_s: from its first token to the first one generated, in seconds.

    keeping_s   of the prompt's time: rows and scoring keys made and handed over to where they are kept
    """

    label: str
    tokens: int
    seconds: float
    tokens_per_s: float
    first_token_s: float
    keeping_s: float = 0.0


def compare(
    model: PreTrainedModel,
    prompt: torch.Tensor,
    alpha: float,
    hot: str,
    cold_dir: Path | None,
    on_progress: Callable[[str], None],
) -> list[PrefillRow]:
    """The stock cache and HillInfer on a prompt [1, N]; in this order."""
    tokens = prompt.shape[1] - 1
    store = StoreSettings(hot_bytes=Budget.parse(hot), cold_dir=cold_dir, trace=True)
    with HillInferCache(model, HillInfer(alpha=alpha), store=store, prompt_length=tokens) as ours:
        ours.expect(prompt.shape[1])
        runs: list[tuple[str, str, Any]] = [
            ("stock DynamicCache", "sdpa", stock_caches.dynamic(model)),
            (f"hillinfer α={alpha:g}, hot {hot}", NAME, ours),
        ]
        seconds = [0.0] * len(runs)
        for number, begin in enumerate(range(0, tokens, _CHUNK)):
            on_progress(f"prompt: {begin} of {tokens} tokens")
            order = range(len(runs)) if number % 2 == 0 else reversed(range(len(runs)))
            for index in order:
                _, implementation, cache = runs[index]
                model.set_attn_implementation(implementation)
                seconds[index] += _forward(model, prompt[:, begin : min(begin + _CHUNK, tokens)], cache)
        rows = []
        for (label, implementation, cache), taken in zip(runs, seconds, strict=True):
            model.set_attn_implementation(implementation)
            first = taken + _forward(model, prompt[:, tokens:], cache)
            rows.append(PrefillRow(label, tokens, taken, tokens / taken, first))
        rows[-1].keeping_s = sum(span.end - span.start for span in ours.trace.spans if span.name == "store")
    return rows


def _forward(model: PreTrainedModel, tokens: torch.Tensor, cache: Any) -> float:
    start = time.perf_counter()
    with torch.inference_mode():
        model(tokens, logits_to_keep=1, **{cache_keyword(model): cache})
    return time.perf_counter() - start
