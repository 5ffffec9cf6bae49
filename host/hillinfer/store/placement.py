"""Hierarchical KV cache management, the decisions: who is pinned, who is promoted, who makes room (paper §HKM).

Placement has two metrics. *Temporal pinning*: the newest tokens stay in the hot pool. *Frequency*: a hit-rate table,
uint16 per token, counts how often a token was selected; it ages, and saturates instead of wrapping. A cold token that
was selected is promoted when its aged count beats that of the coldest unpinned hot token, which makes room: equal
volume both ways, and no ping-pong of tokens whose rank merely flickers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.kv.column import Column

Positions = npt.NDArray[np.int64]

HIT = 1024
"""What one selection adds to a count: fixed point, so that ageing by 1/32 has something to take from."""

_AGEING = 5  # a count loses 1/32 per step


@dataclass(frozen=True)
class Swap:
    """Tokens that change places, int64 [n] each: ``promote`` enters the hot pool, ``demote`` leaves it."""

    promote: Positions
    demote: Positions


class Placement:
    """The hit-rate table of one layer and sequence, and the choices made by it."""

    def __init__(self) -> None:
        self._counts = Column(np.uint16)

    @property
    def counts(self) -> npt.NDArray[np.uint16]:
        """uint16 [tokens], aged selections in units of 1/1024."""
        return self._counts.values

    def extend(self, tokens: int) -> None:
        self._counts.resize(tokens)

    def count(self, selected: Positions) -> None:
        """One step has passed in which ``selected`` was attended."""
        _native.count_step(self._counts.values, selected, _AGEING, HIT)

    def count_step(self, step: _native.Step) -> None:
        """``count`` what a native step attended."""
        step.count(self._counts.values, _AGEING, HIT)

    def coldest(self, hot: Positions, count: int, pinned_from: int) -> Positions:
        """The ``count`` hot tokens to give up first: unpinned before pinned, then lowest count, then oldest."""
        if count <= 0:
            return hot[:0]
        if count >= len(hot):
            return hot
        rank = self._counts.values[hot].astype(np.int64) << 40 | hot
        rank[hot >= pinned_from] |= 1 << 60
        return hot[np.argpartition(rank, count - 1)[:count]]

    def swap(self, candidates: Positions, hot: Positions, pinned_from: int, most: int) -> Swap:
        """Which cold, selected ``candidates`` trade places with which ``hot`` tokens (−1: none), at most ``most``."""
        if not len(candidates) or most <= 0:
            return Swap(candidates[:0], candidates[:0])
        counts = self._counts.values
        falling = _native.coldest(counts, hot, pinned_from, min(len(candidates), most))
        rising = candidates[np.argsort(counts[candidates], kind="stable")[::-1][: len(falling)]]
        worth = int((counts[rising] > counts[falling]).sum())
        return Swap(rising[:worth], falling[:worth])

    def hottest(self, tokens: int, count: int) -> Positions:
        """The ``count`` tokens among 0…tokens − 1 with the highest counts, newest first among equals, ascending."""
        if count >= tokens:
            return np.arange(tokens)
        if count <= 0:
            return np.arange(0)
        rank = self._counts.values[:tokens].astype(np.int64) << 40 | np.arange(tokens)
        return np.sort(np.argpartition(rank, tokens - count)[tokens - count :])
