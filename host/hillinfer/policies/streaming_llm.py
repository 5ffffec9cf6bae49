"""StreamingLLM: the first tokens, which softmax uses as a sink, and the most recent ones.

Source: Xiao et al., Efficient Streaming Language Models with Attention Sinks (arXiv 2309.17453). Departure: a kept key
stays rotated by its position in the text; the paper renumbers positions within the cache, so as to run past the
model's trained length, which is not what a budget is for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.policies.evicting import EvictingPolicy, Evictor
from hillinfer.store.kept_rows import Held


@dataclass(frozen=True)
class StreamingLLM(EvictingPolicy):
    """sinks    first tokens of the text that always stay; the rest of the budget is for the most recent ones"""

    name: ClassVar[str] = "streaming-llm"
    source: ClassVar[str] = "StreamingLLM, arXiv 2309.17453"
    keeps: ClassVar[str] = "the first and the most recent tokens, in device memory; all others are dropped"

    sinks: int = 4

    def __post_init__(self) -> None:
        if self.sinks < 0:
            raise SettingError(f"sinks is {self.sinks}: it must not be negative")
        super().__post_init__()

    @property
    def minimum(self) -> int:
        return self.sinks + 1

    @property
    def why_minimum(self) -> str:
        return f"{self.sinks} sinks and 1 recent token"

    def open(self, geometry: Geometry) -> Evictor:
        return _SinksAndRecent(self.sinks)


class _SinksAndRecent(Evictor):
    def __init__(self, sinks: int) -> None:
        self._sinks = sinks

    def scores(self, held: Held, budget: int) -> torch.Tensor:
        return held.positions.float().masked_fill(held.positions < self._sinks, torch.inf)
