"""Which model a profile is of: the shape of its KV heads, and a sample of its weights that survives quantisation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hillinfer.errors import ModelError

SAMPLE = 64
"""Weights in a sample."""
_ALIKE = 0.9  # cosine of two samples of one model; rounding to 4 bits leaves .99, fine-tuning more, another model 0


@dataclass(frozen=True)
class ModelIdentity:
    """name      for people
    kind      transformers' model type ("llama"); None where a file does not tell
    layers    indices of the layers with full attention, in order: the ones that are profiled
    kv_heads  KV heads per layer; group: query heads of each; head_dim: their dimension (None: not told)
    sample    weights at fixed places of the input embedding; empty where a file does not tell
    """

    name: str
    kind: str | None
    layers: tuple[int, ...]
    kv_heads: int
    group: int | None = None
    head_dim: int | None = None
    sample: tuple[float, ...] = ()

    def difference(self, other: ModelIdentity) -> str | None:
        """How the two are not one model, in words ("28 layers, not 32"); None where nothing says so.

        Two models of one shape whose embeddings agree count as one: the base and its fine-tunes, in any number format.
        """
        if len(self.layers) != len(other.layers):
            return f"{len(self.layers)} full-attention layers, not {len(other.layers)}"
        for what in ("kv_heads", "kind", "group", "head_dim"):
            mine, theirs = getattr(self, what), getattr(other, what)
            if None not in (mine, theirs) and mine != theirs:
                return f"{what.replace('_', ' ')} {mine}, not {theirs}"
        if self.layers != other.layers:
            return "its full-attention layers elsewhere"
        if self.sample and other.sample and _cosine(self.sample, other.sample) < _ALIKE:
            return "other weights"
        return None


def check_profiled(model: ModelIdentity) -> None:
    """ModelError for a model without two KV heads in a layer: its heads have nobody to be like."""
    if model.kv_heads < 2:
        raise ModelError(
            f"{model.name} has one KV head per layer: HeteroCache groups the heads of a layer, and there is nothing "
            "to group. Choose another policy (hillinfer policies)"
        )


def _cosine(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    if len(a) != len(b):
        return 0.0
    return sum(x * y for x, y in zip(a, b, strict=True)) / max(math.hypot(*a) * math.hypot(*b), 1e-30)
