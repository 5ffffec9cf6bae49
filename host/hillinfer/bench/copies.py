"""How much ranking by a small scoring copy costs: KL to the full cache of each copy, on several texts and models.

Each text is read by a model once and replayed into a cache with each copy, through the engine as users run it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench import quality
from hillinfer.bench.quality import Method
from hillinfer.kv.copies import KINDS
from hillinfer.policies import HillInfer

RAW = "int8, raw sum"
"""The paper's ranking beside them, on the finest copy."""


@dataclass(frozen=True)
class Row:
    """One copy at one share of the tokens: KL(full cache ‖ copy) per token in nats for each text, and their mean.

    agreement      share of steps with the full cache's likeliest token
    scoring_bytes  of the copy, all layers; 0 where it lies in the board's memory only while it is read
    kv_share       that over the bytes of the keys and values in FP16
    """

    model: str
    copy: str
    alpha: float
    kl: float
    kl_of_text: dict[str, float]
    agreement: float
    scoring_bytes: int
    kv_share: float


def compare(
    model: PreTrainedModel,
    name: str,
    texts: dict[str, torch.Tensor],
    steps: int,
    copies: Sequence[str],
    alphas: Sequence[float],
    cold_dir: Path | None,
    on_progress: Callable[[str], None],
) -> list[Row]:
    """Every copy at every share on every text [1, N], the last ``steps`` tokens of which are decoded."""
    chosen = [(copy, alpha) for copy in [*copies, RAW] for alpha in alphas]
    methods = [_method(copy, alpha) for copy, alpha in chosen]
    found = quality.compare(model, list(texts.values()), steps, methods, "20%", cold_dir, on_progress)
    rows = []
    for (copy, alpha), each in zip(chosen, found, strict=True):
        of_text = dict(zip(texts, each.kl_per_passage, strict=True))
        halves = each.cold_bytes * 2 / model.dtype.itemsize
        share = each.scoring_bytes / halves if halves else 0.0
        rows.append(Row(name, copy, alpha, each.kl, of_text, each.agreement, each.scoring_bytes, share))
    return rows


def _method(copy: str, alpha: float) -> Method:
    raw = copy == RAW
    policy = HillInfer(alpha=alpha, reduce="sum" if raw else "max-lse")
    return Method(f"{copy} α={alpha:g}", policy, "int8" if raw else copy)


def default_copies() -> list[str]:
    """All that are kept in memory, the finest first."""
    return list(KINDS)


def as_dict(rows: Sequence[Row], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings and rows, ready for JSON."""
    return {"benchmark": "copies", **settings, "rows": [asdict(row) for row in rows]}
