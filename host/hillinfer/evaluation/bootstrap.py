"""How sure a mean is: intervals by the bootstrap (Efron and Tibshirani 1993, chapter 13: percentile intervals)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

DRAWS = 10_000
LEVEL = 0.95
_AT_ONCE = 1 << 22  # numbers drawn at a time: 32 MiB

Interval = tuple[float, float]


def mean_interval(values: Sequence[float], seed: int = 0) -> Interval:
    """The 95 % interval of the mean of n values, n ≥ 1: of paired differences, when these are the values."""
    return _percentiles(_means(np.asarray(values, dtype=np.float64), np.random.default_rng(seed)))


def difference_interval(values: Sequence[float], others: Sequence[float], seed: int = 0) -> Interval:
    """The 95 % interval of mean(values) − mean(others), of two samples that are not paired."""
    rng = np.random.default_rng(seed)
    mine = _means(np.asarray(values, dtype=np.float64), rng)
    return _percentiles(mine - _means(np.asarray(others, dtype=np.float64), rng))


def _means(values: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Means float64 [DRAWS] of as many samples of n out of the n values, drawn with replacement."""
    rows = max(1, _AT_ONCE // len(values))
    return np.concatenate(
        [
            values[rng.integers(len(values), size=(min(rows, DRAWS - first), len(values)))].mean(1)
            for first in range(0, DRAWS, rows)
        ]
    )


def _percentiles(means: npt.NDArray[np.float64]) -> Interval:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
