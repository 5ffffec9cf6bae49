"""How sure a difference of right-or-wrong scores is, down to one item and none that differs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hillinfer.evaluation.bootstrap import Interval

_Z2 = 1.959963984540054**2  # of 95 %
_HALVINGS = 60


def paired_interval(differences: Sequence[float]) -> Interval:
    """The 95 % score interval of the mean of paired differences, each −1, 0 or 1 (Tango 1998, Stat. Med. 17, 891).

    Of n items that all are the same it is ± z²/(n + z²): ± 43 points of five.
    """
    gains, losses, items = differences.count(1), differences.count(-1), len(differences)
    middle = (gains - losses) / items
    return (
        _edge(gains, losses, items, middle, -1.0),
        _edge(gains, losses, items, middle, 1.0),
    )


def alike_interval(difference: float, items: int) -> Interval:
    """For the mean of ``items`` differences of scores that all are the same, of scores from 0 to 1.

    Of all there might be, a share of z²/(items + z²) at most is another (Wilson 1927), by as much as scores allow.
    """
    other = _Z2 / (items + _Z2)
    return difference - other * (1 + difference), difference + other * (1 - difference)


def _edge(gains: int, losses: int, items: int, middle: float, end: float) -> float:
    """Between the mean and ±1: the difference from which on the score test refuses."""
    held, refused = middle, end
    for _ in range(_HALVINGS):
        tried = (held + refused) / 2
        if _score2(gains, losses, items, tried) <= _Z2:
            held = tried
        else:
            refused = tried
    return held


def _score2(gains: int, losses: int, items: int, difference: float) -> float:
    """The score statistic, squared, of a true difference; the share of losses is then the likeliest one."""
    a = 2 * items
    b = -gains - losses + (2 * items - gains + losses) * difference
    c = -losses * difference * (1 - difference)
    lost = (math.sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    variance = items * (2 * lost + difference * (1 - difference))
    off = gains - losses - items * difference
    return 0.0 if abs(off) < 1e-12 else math.inf if variance <= 0 else off * off / variance
