"""A model whose attention is left out: what a step takes that no cache can save. Its output means nothing."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

ATTENTION = "hillinfer-bench-no-attention"
"""The attention function that goes with it, for ``model.set_attn_implementation``."""


class CountingLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # transformers' __init_subclass__
    """Keeps no key and no value: only how many tokens there were."""

    def __init__(self, tokens: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._tokens = tokens

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Count new keys and values [B, H, T, d]; they come back as they are."""
        self.is_initialized = True
        self._tokens += key_states.shape[2]
        return key_states, value_states

    def get_seq_length(self) -> int:
        return self._tokens


def counting_cache(model: PreTrainedModel, tokens: int) -> DynamicCache:
    """A cache whose full-attention layers say that they hold ``tokens``."""
    cache = DynamicCache(config=model.config)
    cache.layers = [CountingLayer(tokens) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def _attention(_module: torch.nn.Module, query: torch.Tensor, *_: Any, **__: Any) -> tuple[torch.Tensor, None]:
    """The query [B, H·G, T, d] itself, as an output [B, T, H·G, d]."""
    return query.transpose(1, 2), None


def _mask(**_: Any) -> None:
    """No mask is made."""


AttentionInterface.register(ATTENTION, _attention)
AttentionMaskInterface.register(ATTENTION, _mask)
