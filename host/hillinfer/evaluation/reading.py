"""A prompt read by the model once, and caches that hold it, for any contender."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from hillinfer.evaluation.contender import Contender
from hillinfer.integrations.prompt_record import PromptRecord


class Reading:
    """The last prompt that was read; the next one is read from where the two differ.

    cold_dir  folder of the cold files; None: the default one
    """

    def __init__(self, model: PreTrainedModel, cold_dir: Path | None) -> None:
        self._model, self._cold_dir = model, cold_dir
        self._record: PromptRecord | None = None
        self._empty = True

    def read(self, prompt: torch.Tensor) -> None:
        """Hold int64 [n], n ≥ 0."""
        self._empty = len(prompt) == 0
        ids = prompt[None].to(self._model.device)
        if self._record is not None and not self._empty:
            self._record.read(ids)
        elif not self._empty:
            self._record = PromptRecord(self._model, ids)

    @contextmanager
    def open(self, contender: Contender, tokens: int) -> Iterator[Any]:
        """The contender's cache with the prompt in it, checked for ``tokens`` in all."""
        if contender.full:
            self._model.set_attn_implementation("sdpa")  # what a user of the stock cache runs
            yield DynamicCache(config=self._model.config) if self._empty else self._held().stock()
            return
        with contender.open(self._model, tokens, self._cold_dir) as cache:
            if not self._empty:
                self._held().replay(cache)
            yield cache

    def _held(self) -> PromptRecord:
        assert self._record is not None, "a prompt is read before caches with it are opened"
        return self._record

    def close(self) -> None:
        """Forget the prompt."""
        if self._record is not None:
            self._record.close()
