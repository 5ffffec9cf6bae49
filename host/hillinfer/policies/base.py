"""What a policy is: which tokens are attended, never where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.selection import Positions, Scores

PerHead = npt.NDArray[np.float32]
"""float32 [H, G]: a number per query head, by KV head."""


@dataclass(frozen=True)
class Policy(ABC):
    """A method. Its dataclass fields are its settings, checked in ``__post_init__`` (SettingError names the fix)."""

    name: ClassVar[str]
    source: ClassVar[str]


@dataclass(frozen=True)
class SelectingPolicy(Policy):
    """Keeps every token; at each step ranks all of them and attends to the best.

    A policy object holds no state: what a stream must remember between steps is the ``normaliser`` that
    ``observe`` returns.
    """

    @abstractmethod
    def budget(self, tokens: int) -> int:
        """Most tokens attended per step (and head, where heads select their own), of ``tokens`` cached ones."""

    @abstractmethod
    def exact(self, tokens: int) -> bool:
        """Whether everything is attended whatever the scores, so that nothing needs to be scored."""

    @abstractmethod
    def queries(
        self,
        query: npt.NDArray[np.float32],
        scaling: float,
        normaliser: PerHead,
        lowest_exponent: npt.NDArray[np.int8],
    ) -> list[QuantisedQuery]:
        """What the keys are to be scored with, one list of scores each, for a query float32 [H, G, d]."""

    @abstractmethod
    def select(self, scores: list[Scores]) -> list[Positions]:
        """Ascending positions to attend for each list of scores int16 [tokens]: one for all heads, or one per head."""

    @abstractmethod
    def observe(self, normaliser: PerHead | None, lse: PerHead) -> PerHead:
        """The normaliser after a step whose attention left the log-sum-exp ``lse`` (None before the first)."""
