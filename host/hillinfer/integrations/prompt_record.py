"""A prompt read by the model once, for the caches of many policies: recorded as it is read, then replayed into each."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import Cache, DynamicLayer

from hillinfer.generation import cache_keyword
from hillinfer.integrations.transformers import HillInferCache, HillInferLayer
from hillinfer.pipeline.recording import Recording


class PromptRecord:
    """One prompt [1, N] as a model's attention saw it.

    ``cache`` is a full cache that holds the prompt, to go on decoding with; what it decodes is not replayed.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        input_ids: torch.Tensor,
        chunk: int = 512,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._model, self.tokens, self._chunk = model, input_ids.shape[1], chunk
        self.cache = HillInferCache(model, Recording(), prompt_length=self.tokens)
        keyword: dict[str, Any] = {cache_keyword(model): self.cache}
        with torch.inference_mode():
            for first in range(0, self.tokens, chunk):
                stop = min(first + chunk, self.tokens)
                model(input_ids[:, first:stop], logits_to_keep=1, **keyword)
                if on_progress is not None:
                    on_progress(stop, self.tokens)
        # Layers of fixed size (sliding windows) are transformers' own, and forget as decoding goes on.
        self._others = {
            index: copy.deepcopy(layer)
            for index, layer in enumerate(self.cache.layers)
            if not isinstance(layer, HillInferLayer)
        }

    def replay(self, cache: Cache, tokens: int | None = None) -> None:
        """Put the prompt into an empty cache of the same model: a HillInferCache of any policy, or a DynamicCache.

        tokens   only so many of its first ones, a multiple of the chunk; for models all of whose layers keep everything
        """
        if isinstance(cache, HillInferCache):
            cache.prompt_length = self.tokens if tokens is None else tokens
        for index, (mine, theirs) in enumerate(zip(self.cache.layers, cache.layers, strict=True)):
            if not isinstance(mine, HillInferLayer):
                cache.layers[index] = copy.deepcopy(self._others[index])
                continue
            for chunk in itertools.islice(mine.recorded(), None if tokens is None else tokens // self._chunk):
                if isinstance(theirs, HillInferLayer):
                    theirs.admit(chunk)
                else:
                    assert isinstance(theirs, DynamicLayer)
                    theirs.update(chunk.keys[None], chunk.values[None])

    def stock(self) -> DynamicCache:
        """transformers' own cache, holding the prompt."""
        cache = DynamicCache(config=self._model.config)
        self.replay(cache)
        return cache

    def close(self) -> None:
        """Forget the prompt."""
        self.cache.close()
