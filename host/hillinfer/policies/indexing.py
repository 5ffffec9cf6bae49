"""Policies that keep every token, and pick those of a step by an index in fast memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.selection import Positions
from hillinfer.policies.base import Policy


class Index(ABC):
    """What is known of one layer's sequence without looking at its rows.

    Fed with tokens as they are cached, and asked at every step which of them to attend. What it holds depends on the
    tokens alone, not on how many came at a time; where their rows are is the store's business.
    """

    @abstractmethod
    def extend(self, keys: torch.Tensor, query: torch.Tensor) -> None:
        """The next tokens: keys [H, n, d] as they are attended (after RoPE), and their queries [H, G, n, d]."""

    @property
    def unsettled(self) -> bool:
        """Whether it has to see every key once more before it can select: see ``settle``."""
        return False

    def settle(self, keys: Iterator[torch.Tensor]) -> None:
        """All keys so far, [H, n, d] at a time in order of position; read back from their tiers, so seldom."""
        raise NotImplementedError(f"{type(self).__name__} is always settled")

    @abstractmethod
    def select(self, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        """Ascending positions to attend for a query float32 [H, G, d]; None: all of them.

        One set for all heads, or one per KV head. ``scaling`` is what the model multiplies q·k with.
        """

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of memory it takes, as allocated."""


class Everything(Index):
    """The index of a layer that is attended whole: nothing to keep, everything to attend."""

    def extend(self, keys: torch.Tensor, query: torch.Tensor) -> None:
        pass

    def select(self, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        return None

    @property
    def nbytes(self) -> int:
        return 0


@dataclass(frozen=True)
class IndexingPolicy(Policy):
    """Keeps every token in the tiers; at each step an index in fast memory tells which of them to attend.

    The storage device scores nothing. A budget is what a step attends to, per KV head; the index comes on top.

    in_dram    the index is counted in DRAM, and taken from the hot budget; else it is in the device tier, beside the
               newest tokens that ``device_bytes`` bounds
    predicts   the next layer's query is foretold while a layer computes, and its rows are read meanwhile
    """

    in_dram: ClassVar[bool] = False
    predicts: ClassVar[bool] = False

    @abstractmethod
    def open(self, geometry: Geometry, device: torch.device) -> list[Index]:
        """The empty indices of one sequence, a layer each, on the compute device; they may know of each other."""

    @abstractmethod
    def attended(self, cached: int) -> int:
        """Tokens each KV head may attend to at a step, of ``cached`` ones."""

    def whole_layers(self, layers: int) -> frozenset[int]:
        """Which of so many layers attend to everything at every step."""
        return frozenset()

    def dram_bytes(self, geometry: Geometry, tokens: int) -> int:
        """Most bytes that the index of a stream of ``tokens`` takes from the DRAM budget; 0 where it takes none."""
        return 0

    def exact(self, tokens: int) -> bool:
        """Whether everything is attended whatever the index says."""
        return self.attended(tokens) >= tokens


def check_layers(name: str, layers: int) -> None:
    """SettingError for a negative number of layers, the setting ``name``."""
    if layers < 0:
        raise SettingError(f"{name} is {layers}: a number of layers is not negative (0 for none)")


def check_chunk(name: str, tokens: int) -> None:
    """SettingError for chunks of no tokens, the setting ``name``."""
    if tokens < 1:
        raise SettingError(f"{name} is {tokens}: a chunk has at least 1 token")
