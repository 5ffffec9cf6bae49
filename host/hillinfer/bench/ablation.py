"""What each part of the paper's design is worth: without them, then one after the other, decoding with a real model.

HKM (hierarchical KV cache management) decides which rows stay in DRAM; without it, those that were used last do. APP
(the adaptive prefetch-based pipeline) reads ahead for a predicted query and shares the scoring out by measured speeds.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench import steps, stock_caches
from hillinfer.bench.steps import Decoding
from hillinfer.bench.timing import in_turns, median_ms, p95_ms
from hillinfer.config import Budget, StoreSettings
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import HillInfer

_SETTLING = 16  # steps before any is counted: a pool that goes by last use is empty at first
_ROUNDS, _BLOCK, _WARM = 6, 8, 1
STEPS = _SETTLING + _ROUNDS * (_BLOCK + _WARM)
"""Tokens that every variant decodes."""


@dataclass
class AblationRow:
    """One variant: a step in milliseconds, and what its pool did in all steps."""

    label: str
    ms: float
    p95_ms: float
    times_stock: float = 1.0
    hot_hit_rate: float | None = None
    moved_fraction: float | None = None
    cold_read_bytes_per_token: float | None = None


def variants(hot: str, cold_dir: Path | None) -> dict[str, StoreSettings]:
    """From near-data scoring alone to everything."""
    placed = StoreSettings(hot_bytes=Budget.parse(hot), cold_dir=cold_dir, balance="off")
    return {
        "HIE alone: rows stay by last use": replace(placed, placement="last-use"),
        "+ HKM: rows stay by recency and frequency": placed,
        "+ APP: balanced, reads one layer ahead": replace(placed, balance="auto", lookahead=1),
    }


def run(
    model: PreTrainedModel,
    ids: torch.Tensor,
    tokens: int,
    alpha: float,
    chosen: dict[str, StoreSettings],
    on_progress: Callable[[str], None],
) -> list[AblationRow]:
    """The stock cache and all variants, in turns, after the first ``tokens`` tokens of a text int64 [n]."""
    on_progress(f"reading {tokens} tokens")
    record = PromptRecord(model, ids[None, :tokens])
    with contextlib.ExitStack() as opened:
        opened.callback(record.close)
        running = [Decoding(steps.STOCK, model, stock_caches.dynamic(model), "sdpa", ids[tokens:])]
        for label, store in chosen.items():
            cache = opened.enter_context(HillInferCache(model, HillInfer(alpha=alpha), store=store))
            cache.expect(tokens + STEPS)
            running.append(Decoding(label, model, cache, NAME, ids[tokens:]))
        for each in running:
            on_progress(f"filling {each.label}")
            record.replay(each.cache)
            each.prepare()
            for _ in range(_SETTLING if isinstance(each.cache, HillInferCache) else 1):
                each.step()
        times = in_turns(running, rounds=_ROUNDS, block=_BLOCK, warm=_WARM, on_progress=on_progress)
        rows = [
            AblationRow(each.label, median_ms(seconds), p95_ms(seconds))
            for each, seconds in zip(running, times, strict=True)
        ]
        for row, each in zip(rows, running, strict=True):
            row.times_stock = row.ms / rows[0].ms
            if isinstance(each.cache, HillInferCache):
                stats = each.cache.stats()
                row.hot_hit_rate, row.moved_fraction = stats.hot_hit_rate, stats.moved_fraction
                row.cold_read_bytes_per_token = stats.cold_read_bytes / STEPS
    return rows


def as_dict(rows: list[AblationRow], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings and rows, ready for JSON."""
    return {"benchmark": "ablation", **settings, "rows": [asdict(row) for row in rows], "summary": {}}
