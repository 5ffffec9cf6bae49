"""How sure a mean is: the bootstrap over groups (Davison and Hinkley 1997, section 3.8), and Student's t over few.

Percentiles of the bootstrap are as narrow as if the spread was known; they are widened by what Student's t has over the
normal distribution, and by n over n − 1 (after Hesterberg, arXiv 1411.5279).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

DRAWS = 10_000
LEVEL = 0.95
ENOUGH = 8
"""Groups from which on the bootstrap is used; fewer have too few samples to draw (decision 65)."""
_AT_ONCE = 1 << 22  # numbers drawn at a time: 32 MiB
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447)  # 97.5 % quantiles for 1 … 6 degrees of freedom

Interval = tuple[float, float]
Groups = Sequence[Sequence[float]]


def mean_interval(groups: Groups, seed: int = 0) -> Interval | None:
    """The 95 % interval of the mean of all values, of which only whole groups are independent of each other.

    None where the groups don't tell: one group, or all with the same mean.
    """
    if _alike(groups):
        return None
    if len(groups) < ENOUGH:
        half = _STUDENT[len(groups) - 2] * math.sqrt(_variance(groups))
        return _mean(groups) - half, _mean(groups) + half
    return _percentiles(_means(groups, np.random.default_rng(seed)), _mean(groups), len(groups))


def difference_interval(groups: Groups, others: Groups, seed: int = 0) -> Interval | None:
    """The 95 % interval of the mean of ``groups`` less that of ``others``, two samples that are not paired.

    None where either doesn't tell. Of few groups, Student's t with the degrees of freedom of the smaller sample.
    """
    if _alike(groups) or _alike(others):
        return None
    fewest = min(len(groups), len(others))
    middle = _mean(groups) - _mean(others)
    if fewest < ENOUGH:
        half = _STUDENT[fewest - 2] * math.sqrt(_variance(groups) + _variance(others))
        return middle - half, middle + half
    rng = np.random.default_rng(seed)
    mine = _means(groups, rng)
    return _percentiles(mine - _means(others, rng), middle, fewest)


def _alike(groups: Groups) -> bool:
    """Whether there is no spread to see; what differs by rounding alone is the same."""
    means = [math.fsum(group) / len(group) for group in groups]
    return max(means) - min(means) <= 1e-9 * max(1.0, *map(abs, means))


def _mean(groups: Groups) -> float:
    return math.fsum(value for group in groups for value in group) / sum(map(len, groups))


def _variance(groups: Groups) -> float:
    """Of the mean of all values: that of a ratio of totals, sums over sizes (Cochran 1977, section 6.3)."""
    mean, size = _mean(groups), sum(map(len, groups)) / len(groups)
    off = [(math.fsum(group) - mean * len(group)) / size for group in groups]
    return math.fsum(each * each for each in off) / (len(groups) * (len(groups) - 1))


def _means(groups: Groups, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Means float64 [DRAWS] of the values of as many groups, drawn with replacement."""
    sums = np.array([math.fsum(group) for group in groups])
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    rows = max(1, _AT_ONCE // len(groups))
    means = []
    for first in range(0, DRAWS, rows):
        drawn = rng.integers(len(groups), size=(min(rows, DRAWS - first), len(groups)))
        means.append(sums[drawn].sum(1) / sizes[drawn].sum(1))
    return np.concatenate(means)


def _percentiles(means: npt.NDArray[np.float64], middle: float, groups: int) -> Interval:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    wider = math.sqrt(groups / (groups - 1)) * _over_normal(groups - 1)
    return middle + wider * (float(low) - middle), middle + wider * (float(high) - middle)


def _over_normal(freedom: int) -> float:
    """Student's 97.5 % quantile over the normal one, to 0.1 % (Abramowitz and Stegun 26.7.5)."""
    z2 = 1.959964**2
    first, second = (z2 + 1) / 4, (5 * z2**2 + 16 * z2 + 3) / 96
    third = (3 * z2**3 + 19 * z2**2 + 17 * z2 - 15) / 384
    return 1 + first / freedom + second / freedom**2 + third / freedom**3
