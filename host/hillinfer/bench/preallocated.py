"""A stock cache without its two wastes: memory is there before the tokens are, and KV heads are not repeated.

The second baseline: what an engine does that is written with care but attends to everything.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface, DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION = "hillinfer-bench-grouped-sdpa"
"""The attention function that goes with it, for ``model.set_attn_implementation``."""


class PreallocatedLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # transformers' __init_subclass__
    """Keys and values [B, H, room, d], filled in place."""

    def __init__(self, room: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._room, self._length = room, 0

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Take memory for all tokens that will ever come."""
        super().lazy_initialization(key_states, value_states)
        shape = (*key_states.shape[:2], self._room, key_states.shape[3])
        self._all_keys, self._all_values = key_states.new_zeros(shape), value_states.new_zeros(shape)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Put new keys and values [B, H, T, d] behind the others; views of all of them."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        first, self._length = self._length, self._length + key_states.shape[2]
        self._all_keys[:, :, first : self._length] = key_states
        self._all_values[:, :, first : self._length] = value_states
        self.keys, self.values = self._all_keys[:, :, : self._length], self._all_values[:, :, : self._length]
        return self.keys, self.values


def preallocated_cache(model: PreTrainedModel, room: int) -> DynamicCache:
    """A cache whose full-attention layers have room for so many tokens."""
    cache = DynamicCache(config=model.config)
    cache.layers = [PreallocatedLayer(room) if type(layer) is DynamicLayer else layer for layer in cache.layers]
    return cache


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **kwargs: Any,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """One query per head: those of a group become rows of one head. query [B, H·G, T, d] → [B, T, H·G, d]."""
    batch, heads, length, dim = query.shape
    if length > 1:
        out: tuple[torch.Tensor, torch.Tensor | None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, **kwargs
        )
        return out
    rows = query.reshape(batch, key.shape[1], heads // key.shape[1], dim)
    attended = torch.nn.functional.scaled_dot_product_attention(
        rows, key, value, attn_mask=attention_mask, scale=scaling
    )
    return attended.reshape(batch, 1, heads, dim), None


AttentionInterface.register(ATTENTION, _attention)
AttentionMaskInterface.register(ATTENTION, sdpa_mask)
