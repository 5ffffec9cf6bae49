"""The caches that transformers itself offers, and why one of them does not run on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

try:
    from transformers.cache_utils import QuantizedCache
except ImportError:  # its name and arguments have changed more than once before transformers 5
    QuantizedCache = None  # type: ignore[misc,assignment]


@dataclass(frozen=True)
class Unavailable:
    """A cache that cannot be had here. why: in a line, for people."""

    why: str


def dynamic(model: PreTrainedModel) -> DynamicCache:
    """What a model uses unless told otherwise."""
    return DynamicCache(config=model.config)


def offloaded(model: PreTrainedModel) -> Any | Unavailable:
    """Layers wait in host memory and are copied to the GPU in turn."""
    if not torch.cuda.is_available():
        return Unavailable(
            "transformers' offloaded cache moves layers between a GPU and host memory: it needs a GPU, and there is "
            "none. On a CPU it would be the stock cache, whose layers are in host memory already"
        )
    return DynamicCache(config=model.config, offloading=True)


def quantised(model: PreTrainedModel, backend: str) -> Any | Unavailable:
    """Keys and values in few bits: ``backend`` "quanto" (INT4), "hqq" (INT4) or "fp8"."""
    if QuantizedCache is None:
        return Unavailable("this transformers has no QuantizedCache: upgrade it")
    try:
        cache = QuantizedCache(backend, model.config)
        layer: Any = cache.layers[0]  # some backends look for what they need only at the first token
        some = torch.zeros(1, 1, 256, 64, dtype=model.dtype)
        layer.update(some, some)
        layer.update(some[:, :, :1], some[:, :, :1])
        return QuantizedCache(backend, model.config)
    except Exception as error:  # packages that are missing, or cannot be built here, say so in many ways
        return Unavailable(" ".join(str(error).split()) or type(error).__name__)
