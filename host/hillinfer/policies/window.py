"""What SnapKV, PyramidKV and CAKE share: the last queries of a prompt, the window, look back and rank what came before.

The window itself and what is generated after it stay, until nothing of the prompt is left to make room.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch

from hillinfer.errors import SettingError
from hillinfer.policies.evicting import Chunk, EvictingPolicy, Evictor
from hillinfer.store.kept_rows import Held


@dataclass(frozen=True)
class WindowPolicy(EvictingPolicy):
    """window             queries at the end of the prompt that look back; their own tokens stay
    kernel             tokens over which importance is pooled, odd; 1 does not pool
    keep_generated     keep every generated token beyond the budget, as the paper does: memory then grows with the text
    """

    window: int = 32
    kernel: int = 5
    keep_generated: bool = False

    def __post_init__(self) -> None:
        if self.window < 1:
            raise SettingError(f"window is {self.window}: at least 1 query has to look back")
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise SettingError(f"kernel is {self.kernel}: it must be odd and positive, 5 or 7 say (1 does not pool)")
        super().__post_init__()

    @property
    def minimum(self) -> int:
        return self.window + 1

    @property
    def why_minimum(self) -> str:
        return f"its window of {self.window} and 1 token before it"

    @property
    def bounded(self) -> bool:
        return not self.keep_generated


class WindowEvictor(Evictor):
    """Ranks by ``importance`` once, when the prompt is over; a row's rank then stays what it is."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._looking: Chunk | None = None
        self._safe = 0  # position from which on rows are the window's and generated ones

    @abstractmethod
    def importance(self, attention: torch.Tensor) -> torch.Tensor:
        """float32 [H, n] of the softmax rows [H, G, W, n] with which the window looks at the n rows before it."""

    def read(self, chunk: Chunk, held: Held) -> None:
        query, lse = chunk.query, chunk.lse
        if self._looking is not None:
            query, lse = torch.cat([self._looking.query, query], 2), torch.cat([self._looking.lse, lse], 2)
        last = slice(max(0, query.shape[2] - self._window), None)
        self._looking = Chunk(query[:, :, last].clone(), lse[:, :, last].clone(), chunk.scaling)

    def finish(self, held: Held) -> None:
        if self._looking is None:
            return
        looking, self._looking = self._looking, None
        window = looking.query.shape[2]
        self._safe = held.tokens - window
        before = max(0, held.positions.shape[1] - window)
        held.weights.zero_()
        if before:
            held.weights[:, :before] = self.importance(looking.attention(held)[..., :before])

    def scores(self, held: Held, budget: int) -> torch.Tensor:
        return held.weights.masked_fill(held.positions >= self._safe, torch.inf)
