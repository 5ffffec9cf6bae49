"""Which tokens a step attends: what the tiered engine asks, whoever knows the answer.

``near_data`` scores every key where it lies; ``indexed`` asks an index in fast memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch

from hillinfer.csd.contract import Stream
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.chosen import Chosen
from hillinfer.store.token_stream import TokenStream

WINDOW = 16  # last queries of a prompt, whose selections stand for the history that a fresh hit-rate table lacks


class Chooser(ABC):
    """Chooses for all streams of an engine. Told of a stream's tokens in order, once each.

    asks_in_dram   it wants the queries of steps in DRAM, wherever they are computed
    """

    asks_in_dram: ClassVar[bool] = False

    @abstractmethod
    def exact(self, tokens: int) -> bool:
        """Whether a step with so many cached tokens attends to all of them, without being asked."""

    @abstractmethod
    def read(self, stream: Stream, query: torch.Tensor, keys: torch.Tensor, lse: torch.Tensor) -> None:
        """Tokens were attended exactly: query [H, G, n, d], keys [H, n, d], log-sum-exp [H, G, n]."""

    @abstractmethod
    def stepped(self, stream: Stream, query: torch.Tensor, keys: torch.Tensor, lse: torch.Tensor) -> None:
        """One token attended to what was chosen: query [H, G, 1, d], keys [H, 1, d], log-sum-exp float32 [H, G]."""

    @abstractmethod
    def choose(self, stream: TokenStream, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        """Ascending positions for a query [H, G, d]: one set for all heads, or one per KV head; None: everything."""

    def at_once(
        self, stream: TokenStream, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float
    ) -> Chosen | None:
        """``choose`` for a query [H, G, 1, d], and the attention to what is in memory, in one go; None: not here.

        keys, values   [H, 1, d] of the step's own token
        """
        return None

    def guess(self, stream: TokenStream, query: torch.Tensor, scaling: float) -> Positions | None:
        """Ascending positions that a query like this one [H, G, d] would attend to; None where that is not to be told.

        Asked before the step, to read ahead; nothing is counted or remembered of it.
        """
        return None

    @abstractmethod
    def recall(self, stream: TokenStream, scaling: float) -> list[list[Positions]]:
        """What the last queries read would have attended, one list of sets each; once after every prompt."""

    @abstractmethod
    def nbytes(self, stream: Stream) -> int:
        """Bytes of memory taken for the stream beside its tokens."""
