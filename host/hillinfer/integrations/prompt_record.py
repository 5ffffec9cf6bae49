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
from hillinfer.integrations.transformers import NAME, HillInferCache, HillInferLayer
from hillinfer.pipeline.recording import Recording


class PromptRecord:
    """One prompt [1, N] as a model's attention saw it, and others after it.

    ``cache`` is a full cache that holds the prompt, to go on decoding with; what it decodes is not replayed.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        input_ids: torch.Tensor,
        chunk: int = 512,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._model, self._chunk, self.tokens = model, chunk, 0
        self._ids = input_ids[:, :0]
        self.cache = HillInferCache(model, Recording())
        # Layers of fixed size (sliding windows) are transformers' own, and forget: as they were after each chunk.
        self._others: list[dict[int, Any]] = [self._other_layers()]
        self.read(input_ids, on_progress)

    def read(self, input_ids: torch.Tensor, on_progress: Callable[[int, int], None] | None = None) -> int:
        """Hold another prompt [1, N]; the chunks it begins with, as the last one does, are not read again.

        Returns the tokens that were read. A chunk always begins at a multiple of the chunk's length, so that a prompt
        gives the same numbers whatever was read before it.
        """
        shared = min(input_ids.shape[1], self.tokens)
        differ = (input_ids[:, :shared] != self._ids[:, :shared]).any(0).nonzero()[:, 0].tolist()
        kept = (differ[0] if differ else shared) // self._chunk
        self._rewind(kept)
        first, self.tokens, self._ids = kept * self._chunk, input_ids.shape[1], input_ids.clone()
        self.cache.prompt_length = self.tokens
        self._model.set_attn_implementation(NAME)
        keyword: dict[str, Any] = {cache_keyword(self._model): self.cache}
        with torch.inference_mode():
            for begin in range(first, self.tokens, self._chunk):
                stop = min(begin + self._chunk, self.tokens)
                self._model(input_ids[:, begin:stop], logits_to_keep=1, **keyword)
                self._others.append(self._other_layers())
                if on_progress is not None:
                    on_progress(stop, self.tokens)
        return self.tokens - first

    def _other_layers(self) -> dict[int, Any]:
        layers = enumerate(self.cache.layers)
        return {index: copy.deepcopy(layer) for index, layer in layers if not isinstance(layer, HillInferLayer)}

    def _rewind(self, chunks: int) -> None:
        del self._others[chunks + 1 :]
        for index, layer in enumerate(self.cache.layers):
            if isinstance(layer, HillInferLayer):
                layer.rewind(chunks * self._chunk)
            else:
                self.cache.layers[index] = copy.deepcopy(self._others[chunks][index])

    def replay(self, cache: Cache, tokens: int | None = None) -> None:
        """Put the prompt into an empty cache of the same model: a HillInferCache of any policy, or a DynamicCache.

        tokens   only so many of its first ones, a multiple of the chunk; for models all of whose layers keep everything
        """
        if isinstance(cache, HillInferCache):
            cache.prompt_length = self.tokens if tokens is None else tokens
        for index, (mine, theirs) in enumerate(zip(self.cache.layers, cache.layers, strict=True)):
            if not isinstance(mine, HillInferLayer):
                cache.layers[index] = copy.deepcopy(self._others[-1][index])
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
