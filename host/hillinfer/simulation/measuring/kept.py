"""What a policy costs that drops tokens, by the example of StreamingLLM."""

from __future__ import annotations

from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench.synthetic import lengthen
from hillinfer.generation import cache_keyword
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import StreamingLLM
from hillinfer.simulation.measuring.probe import Probe

BUDGET = "20%"


class KeptProbe(Probe):
    """step: all of a step behind ``tokens`` random tokens."""

    def __init__(self, model: PreTrainedModel, tokens: int) -> None:
        super().__init__()
        self.label, self.tokens = f"a fifth of {tokens} random tokens kept", tokens
        self._model = model
        self._policy = StreamingLLM(budget=BUDGET)
        self.cache = HillInferCache(model, self._policy)
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
