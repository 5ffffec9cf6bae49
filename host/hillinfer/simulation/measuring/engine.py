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
from hillinfer.policies.base import SelectingPolicy
from hillinfer.policies.indexing import IndexingPolicy
from hillinfer.simulation.measuring.probe import Probe
from hillinfer.simulation.recording import Recording

_ROOM = 4096  # steps that fit behind the context
PARTS = ("evaluate", "select", "attend", "attend cold", "place", "wait for cold rows")
"""Of a step of HillInfer."""
INDEX_PARTS = ("select", "locate", "place", "attend", "attend cold")
"""Of a step of a policy with an index, those that grow with the context."""


class EngineProbe(Probe):
    """step: all of it and what is behind it, untraced; parts by the names of their spans, all layers, of a step that is
    traced, every other one; cold: rows read then. With an index also rows and head rows: attended then, in the layers
    that go by it."""

    def __init__(
        self,
        model: PreTrainedModel,
        policy: SelectingPolicy | IndexingPolicy,
        tokens: int,
        hot: str,
        cold_dir: Path | None,
        *,
        lookahead: int = 0,
    ) -> None:
        super().__init__()
        self.label = f"the engine, {policy.name}, {tokens} random tokens, hot {hot}"
        self._context, self._steps = tokens, 0
        self._model, self._policy = model, policy
        self._indexed = isinstance(policy, IndexingPolicy)
        store = StoreSettings(hot_bytes=Budget.parse(hot), cold_dir=cold_dir, lookahead=lookahead, trace=True)
        self.cache = HillInferCache(model, policy, store=store)
        try:
            self.cache.expect(tokens + _ROOM)
            lengthen(self.cache, model, tokens)
        except BaseException:
            self.cache.close()
            raise
        self._engine = self.cache.engine(1)
        self.whole_layers = 0
        """Layers that a policy with an index attends whole."""

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
            self.take("step", lambda: (self._model(torch.tensor([[1]]), **keyword), self._engine.settled_ledger()))
            trace.enabled = True
            trace.spans.clear()
            before = self._engine.ledger.selected_cold
            recording = Recording(self._engine, positions=False) if self._indexed else None
            self._model(torch.tensor([[1]]), **keyword)
            if recording is not None:
                recording.close()
                self._count(recording)
            self._engine.settled_ledger()
        parts: defaultdict[str, float] = defaultdict(float)
        for span in trace.spans:
            parts[span.name] += span.end - span.start
        for name in (*PARTS, "locate", "look ahead"):
            self.samples[name].append(parts[name])
        self.samples["cold"].append(self._engine.ledger.selected_cold - before)

    def _count(self, recording: Recording) -> None:
        [works] = recording.trace("").steps
        chosen = [work for work in works if work.each_head < work.tokens]  # all heads together may well take all
        self.whole_layers = len(works) - len(chosen)
        self.samples["rows"].append(sum(work.attended for work in chosen))
        self.samples["head rows"].append(sum(work.each_head for work in chosen))

    def close(self) -> None:
        self.cache.close()
