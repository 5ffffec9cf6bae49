"""Counting HeteroCache's drifts and refills in runs of the engine, by the drift threshold."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.config import Budget, StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies.heterocache import HeteroCache
from hillinfer.profiling.measure import AnalysisSettings, measure
from hillinfer.profiling.roles import Role
from hillinfer.whole_file import write_whole

THRESHOLDS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
_PROFILED = 32  # steps by which the heads' roles are found
_TOP = 1024 / 6500  # of the prompt


def record_thresholds(
    model: PreTrainedModel,
    name: str,
    ids: torch.Tensor,
    tokens: int,
    steps: int,
    path: Path,
    on_progress: Callable[[str], None] = lambda _: None,
    analysis: AnalysisSettings | None = None,
) -> None:
    """Profile the model on the first ``tokens`` of a text int64 [n], decode ``steps`` more with each threshold.

    analysis   None: thresholds of 0.5, and as large a share of the prompt looked at as hillinfer profile's default has
    """
    on_progress("finding the heads' roles")
    analysis = analysis or AnalysisSettings(steps=_PROFILED, top_k=max(1, int(_TOP * tokens)))
    profile = measure(model, ids[None, :tokens], analysis, name=name)
    prompt = PromptRecord(model, ids[None, :tokens])
    model.set_attn_implementation(NAME)
    rows = []
    try:
        for threshold in THRESHOLDS:
            on_progress(f"decoding with a drift threshold of {threshold:g}")
            policy = HeteroCache(budget="50%", profile=profile, drift=threshold)
            events = _decode(model, prompt, ids[tokens : tokens + steps], policy)
            rows.append(
                {
                    "threshold": threshold,
                    "drifts": events.get("drifts", 0),
                    "refills": events.get("refills", 0),
                    "steps": steps,
                }
            )
    finally:
        prompt.close()
    satellites = sum(role is Role.satellite for layer in profile.layers for role in layer.roles)
    pivots = sum(role is Role.pivot for layer in profile.layers for role in layer.roles)
    found: dict[str, Any] = {"model": name, "tokens": tokens, "satellites": satellites, "pivots": pivots, "rows": rows}
    write_whole(path, json.dumps(found, indent=1) + "\n")


def _decode(
    model: PreTrainedModel, prompt: PromptRecord, following: torch.Tensor, policy: HeteroCache
) -> dict[str, int]:
    in_dram = StoreSettings(hot_bytes=Budget(share=1.0))  # where rows lie does not change who drifts
    with HillInferCache(model, policy, store=in_dram) as cache:
        cache.expect(prompt.tokens + len(following))
        prompt.replay(cache)
        with torch.inference_mode():
            for token in following:
                model(token.view(1, 1), **{cache_keyword(model): cache})
        return cache.stats().events
