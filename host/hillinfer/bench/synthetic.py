"""A context that no model has read: random keys and values, for times at lengths that a model was not trained for.

Nothing may be concluded about quality, nor about which tokens matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from transformers.cache_utils import DynamicLayer

from hillinfer.errors import ModelError
from hillinfer.integrations.transformers import HillInferCache, HillInferLayer
from hillinfer.pipeline.recording import Chunk

_CHUNK = 2048
_SPREAD = 3.0  # of keys about their channel's mean, as trained models have it: logits differ by a few nats


def lengthen(cache: Any, model: Any, tokens: int, *, seed: int = 0) -> None:
    """Put synthetic tokens into every layer until the cache, a batch of one, holds ``tokens``."""
    for number, layer in enumerate(cache.layers):
        generator = torch.Generator().manual_seed(seed + 1000 * number + layer.get_seq_length())
        for chunk in _chunks(model, tokens - layer.get_seq_length(), generator):
            if isinstance(layer, HillInferLayer):
                layer.admit(chunk)
            elif isinstance(layer, DynamicLayer) and not layer.is_sliding:
                layer.update(chunk.keys[None], chunk.values[None])
            else:
                raise ModelError("a synthetic context is for models that attend to everything in every layer")
    if isinstance(cache, HillInferCache):
        cache.prompt_length = tokens


def _chunks(model: Any, tokens: int, generator: torch.Generator) -> Iterator[Chunk]:
    config = model.config.get_text_config(decoder=True)
    heads, dim = config.num_key_value_heads, getattr(config, "head_dim", None)
    dim = dim or config.hidden_size // config.num_attention_heads
    group = config.num_attention_heads // heads

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(model.dtype)

    mean = 2 * normal(heads, 1, dim)
    for first in range(0, tokens, _CHUNK):
        count = min(_CHUNK, tokens - first)
        keys, values = _SPREAD * normal(heads, count, dim) + mean, normal(heads, count, dim)
        lse = torch.full((heads, group, count), 8.0)
        yield Chunk(normal(heads, group, count, dim), keys, values, lse, dim**-0.5)
