"""What a policy costs that drops tokens: StreamingLLM, which weighs nothing, or one that does."""

from __future__ import annotations

from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench.synthetic import lengthen
from hillinfer.generation import cache_keyword
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies.evicting import EvictingPolicy
from hillinfer.simulation.measuring.probe import Probe

BUDGET = "20%"


class KeptProbe(Probe):
    """step: all of a step behind ``tokens`` random tokens."""

    def __init__(self, model: PreTrainedModel, policy: EvictingPolicy, tokens: int) -> None:
        super().__init__()
        self.label, self.tokens = f"{policy.name}, {tokens} random tokens", tokens
        self._model, self._policy = model, policy
        self.cache = HillInferCache(model, policy)
        lengthen(self.cache, model, tokens)

    @property
    def attended(self) -> int:
        """Rows kept per head."""
        return self._policy.attended(self.tokens)

    def prepare(self) -> None:
        self._model.set_attn_implementation(NAME)

    def step(self) -> None:
        keyword: dict[str, Any] = {cache_keyword(self._model): self.cache}
        with torch.inference_mode():
            self.take("step", lambda: self._model(torch.tensor([[1]]), **keyword))

    def close(self) -> None:
        self.cache.close()
