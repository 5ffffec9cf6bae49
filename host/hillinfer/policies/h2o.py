"""H2O: heavy hitters, which have received most attention so far, and recent tokens.

Source: Zhang et al., H2O: Heavy-Hitter Oracle for Efficient Generative Inference (arXiv 2306.14048). A key's mass is
the sum of all softmax weights it has received, causal, over prompt and decode steps, of all query heads of its group;
it goes with the row. Departures: a whole prompt is seen before anything is dropped, so that its chunks don't matter;
heads of a group share their keys, so their masses are summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.policies.evicting import Chunk, EvictingPolicy, Evictor
from hillinfer.store.kept_rows import Held

_ELEMENTS = 1 << 20  # attention weights of a prompt computed at a time: what a core's cache holds


@dataclass(frozen=True)
class H2O(EvictingPolicy):
    """recent    share of the budget for the most recent tokens, in [0, 1); the rest is for the heavy hitters"""

    name: ClassVar[str] = "h2o"
    source: ClassVar[str] = "H2O, arXiv 2306.14048"
    keeps: ClassVar[str] = (
        "what was attended most, and recent tokens, per KV head in device memory; all others are dropped"
    )

    recent: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.recent < 1:
            raise SettingError(f"recent is {self.recent}: it must be at least 0 and below 1 (0.5 halves the budget)")
        super().__post_init__()

    @property
    def minimum(self) -> int:
        return 2

    @property
    def why_minimum(self) -> str:
        return "1 heavy hitter and 1 recent token"

    def open(self, geometry: Geometry) -> Evictor:
        return _Mass(self.recent)


class _Mass(Evictor):
    weighs = True

    def __init__(self, recent: float) -> None:
        self._recent = recent

    def read(self, chunk: Chunk, held: Held) -> None:
        length, rows = chunk.query.shape[2], held.positions.shape[1]
        query = (chunk.query.float() * chunk.scaling).flatten(1, 2)
        offset = -chunk.lse.flatten(1)[..., None]
        position = torch.arange(held.tokens - length, held.tokens, device=query.device).repeat(chunk.query.shape[1])
        size = max(1, _ELEMENTS // query.shape[:2].numel())
        for first in range(0, rows, size):
            block = slice(first, min(first + size, rows))
            keys = held.keys[:, block].float().transpose(1, 2)
            weights = torch.baddbmm(offset.expand(-1, -1, keys.shape[2]), query, keys).exp_()
            if block.stop > rows - length:  # else all of it is older than the chunk
                weights.masked_fill_(held.positions[:, None, block] > position[:, None], 0.0)
            held.weights[:, block].add_(weights.sum(1))

    def step(self, held: Held, weights: torch.Tensor | None) -> None:
        assert weights is not None
        held.weights.add_(weights.sum(1))

    def scores(self, held: Held, budget: int) -> torch.Tensor:
        heavy = int((1 - self._recent) * budget)
        return held.weights.masked_fill(held.positions >= held.tokens - (budget - heavy), torch.inf)
