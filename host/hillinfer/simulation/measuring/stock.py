"""What the stock cache of transformers costs: appending a token by a copy of all, attending to all."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import torch
from transformers import AttentionInterface, DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from hillinfer.bench.synthetic import lengthen
from hillinfer.generation import cache_keyword
from hillinfer.simulation.measuring.probe import Probe

_NAME = "hillinfer_timed_sdpa"
_STEPS = 16  # after which a cache is as it was


class _TimedLayer(DynamicLayer):  # type: ignore[no-untyped-call]  # transformers' __init_subclass__
    """Says how long its updates took."""

    spent = 0.0

    def update(self, *arguments: Any, **named: Any) -> tuple[torch.Tensor, torch.Tensor]:
        start = perf_counter()
        updated: tuple[torch.Tensor, torch.Tensor] = super().update(*arguments, **named)
        self.spent += perf_counter() - start
        return updated


class StockProbe(Probe):
    """A context of ``tokens`` random tokens. step: all of a step; append and attend: those parts, all layers."""

    def __init__(self, model: PreTrainedModel, tokens: int) -> None:
        super().__init__()
        self.label, self.tokens = f"the stock cache, {tokens} random tokens", tokens
        self._model, self._attending, self._steps = model, 0.0, 0
        self._cache = DynamicCache(config=model.config)
        self._layers = [_TimedLayer() for _ in self._cache.layers]  # type: ignore[no-untyped-call]
        self._cache.layers = [*self._layers]
        lengthen(self._cache, model, tokens)

    def prepare(self) -> None:
        AttentionInterface.register(_NAME, self._attend)
        self._model.set_attn_implementation(_NAME)

    def _attend(self, *arguments: Any, **named: Any) -> tuple[torch.Tensor, None]:
        start = perf_counter()
        out: tuple[torch.Tensor, None] = sdpa_attention_forward(*arguments, **named)
        self._attending += perf_counter() - start
        return out

    @property
    def _appending(self) -> float:
        return sum(layer.spent for layer in self._layers)

    def step(self) -> None:
        before = self._appending, self._attending
        keyword: dict[str, Any] = {cache_keyword(self._model): self._cache}
        with torch.inference_mode():
            self.take("step", lambda: self._model(torch.tensor([[1]]), **keyword))
        self.samples["append"].append(self._appending - before[0])
        self.samples["attend"].append(self._attending - before[1])
        self._steps += 1
        if self._steps % _STEPS == 0:
            self._cache.crop(-_STEPS)

    def close(self) -> None:
        self._cache.layers, self._layers = [], []
