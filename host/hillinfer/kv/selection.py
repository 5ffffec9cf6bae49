"""Top-k of integer scores, without sorting them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.kv.query import UNITS_PER_NAT

Positions = npt.NDArray[np.int64]
Scores = npt.NDArray[np.int16]


def top(scores: Scores, count: int) -> Positions:
    """Positions int64 [min(count, n)], ascending, of the highest scores int16 [n]; ties go to the newest token."""
    tokens = len(scores)
    if count >= tokens:
        return np.arange(tokens)
    if count <= 0:
        return np.empty(0, np.int64)
    return _native.top(scores, count)


def holding_mass(scores: Scores, mass: float, most: int) -> int:
    """How many of the highest scores hold ``mass`` of Σ exp(score), at most ``most``; scores in 1/256 nat.

    The scores are logits less their head's normaliser, so exp(score) is (the largest over heads of) a softmax
    probability, and the share that a set captures can be estimated before anything is read.
    """
    order = np.sort(scores)[::-1].astype(np.float64)
    weights = np.exp((order - order[0]) / UNITS_PER_NAT)
    captured = np.cumsum(weights)
    enough = int(np.searchsorted(captured, mass * captured[-1])) + 1
    return min(enough, most)
