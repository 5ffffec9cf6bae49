"""What a scoring copy is: how the keys of one stream become small integers, and a query what suits those integers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.copies.moments import KeyMoments
from hillinfer.kv.keys import ScoringKeys

Query = npt.NDArray[np.float32]
"""float32 [H, G, d], or [H, G, d'] as the copy is scored with."""


class ScoringCopy(ABC):
    """The scoring copy of one stream: for keys k and a query q, q·k ≈ q'·k' + shift.

    What it makes of a key depends on that key and its tile alone, to the last bit: not on how many are cast at once.
    """

    @abstractmethod
    def cast(self, keys: torch.Tensor) -> ScoringKeys:
        """Scoring keys of keys [H, n, d] (any float type) whose first token starts a tile."""

    @abstractmethod
    def cast_newest(self, key: torch.Tensor, exponents: npt.NDArray[np.int8]) -> npt.NDArray[np.int8] | None:
        """Integers int8 [H, d'] of a key [H, d] with the exponents int8 [H] of its tile so far.

        None where it changes them: the tile must then be cast again, as a whole.
        """

    @abstractmethod
    def query(self, query: Query) -> tuple[Query, npt.NDArray[np.float32] | None]:
        """q' float32 [H, G, d'] and the shift float32 [H, G] (None: zero), which the head's log-normaliser takes."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory for what was fitted."""
        return 0


class CopyKind(ABC):
    """A kind of scoring copy, before it is fitted to a stream.

    name         what settings call it
    key_format   the integers' format: "int8" or "int4"
    growth       a stream this share longer than when its copy was fitted gets a new one
    """

    name: ClassVar[str]
    key_format: ClassVar[str]
    growth: ClassVar[float]

    unfitted: ScoringCopy | None = None
    """The copy of every stream, where it does not go by a stream's own keys and queries."""

    @property
    def fitted(self) -> bool:
        """Whether it has to be fitted to a stream."""
        return self.unfitted is None

    @abstractmethod
    def key_dim(self, head_dim: int) -> int:
        """d' of keys of head dimension d."""

    @abstractmethod
    def fit(self, keys: KeyMoments, queries: npt.NDArray[np.float64]) -> ScoringCopy:
        """The copy for a stream with such keys, and queries float64 [H, n, d] such as these (of all G heads)."""
