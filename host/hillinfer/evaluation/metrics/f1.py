"""F1 of two bags of words: what share of what was said is right, and what share of what is right was said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def f1(said: Sequence[str], truth: Sequence[str]) -> float:
    """2·P·R / (P + R) with P = common/said and R = common/truth, words counted as often as both have them.

    0 without a common word, so for nothing said and nothing right too.
    """
    common = sum((Counter(said) & Counter(truth)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(said), common / len(truth)
    return 2 * precision * recall / (precision + recall)
