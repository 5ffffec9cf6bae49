"""What a step of the engine costs, by its parts, on a context of random numbers."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench.synthetic import lengthen
from hillinfer.config import Budget, StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import HillInfer
from hillinfer.simulation.measuring.probe import Probe

_ROOM = 4096  # steps that fit behind the context


class EngineProbe(Probe):
    """step: all of it, untraced; evaluate, select, attend, attend cold, place, wait for cold rows: parts, all layers,
    of a step that is traced, every other one; cold: rows read then."""

    def __init__(self, model: PreTrainedModel, tokens: int, alpha: float, hot: str, cold_dir: Path | None) -> None:
        super().__init__()
        self.label = f"the engine, {tokens} random tokens, α {alpha:g}, hot {hot}"
        self._context, self._steps = tokens, 0
        self._model = model
        store = StoreSettings(hot_bytes=Budget.parse(hot), cold_dir=cold_dir, trace=True)
        self._policy = HillInfer(alpha=alpha)
        self.cache = HillInferCache(model, self._policy, store=store)
        try:
            self.cache.expect(tokens + _ROOM)
            lengthen(self.cache, model, tokens)
        except BaseException:
            self.cache.close()
            raise
        self._engine = self.cache.engine(1)

    @property
    def tokens(self) -> int:
        """Tokens of the context, those decoded so far counted by half: what the usual sample saw."""
        return self._context + self._steps // 2

    @property
    def attended(self) -> int:
        """Of them, those that are attended."""
        return self._policy.attended(self.tokens)

    def prepare(self) -> None:
        self._model.set_attn_implementation(NAME)

    def step(self) -> None:
        keyword: dict[str, Any] = {cache_keyword(self._model): self.cache}
        trace = self.cache.trace
        self._steps += 2
        with torch.inference_mode():
            trace.enabled = False
            self.take("step", lambda: self._model(torch.tensor([[1]]), **keyword))
            trace.enabled = True
            trace.spans.clear()
            before = self._engine.ledger.selected_cold
            self._model(torch.tensor([[1]]), **keyword)
            self._engine.settled_ledger()
        parts: defaultdict[str, float] = defaultdict(float)
        for span in trace.spans:
            parts[span.name] += span.end - span.start
        for name in ("evaluate", "select", "attend", "attend cold", "place", "wait for cold rows"):
            self.samples[name].append(parts[name])
        self.samples["cold"].append(self._engine.ledger.selected_cold - before)

    def close(self) -> None:
        self.cache.close()
