"""Which interval a row gets: by its texts where there are enough of them, else by its items (decision 65)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hillinfer.evaluation.bootstrap import Interval, mean_interval
from hillinfer.evaluation.proportions import alike_interval, paired_interval

ENOUGH_TEXTS = 3

Units = Literal["texts", "items"]


@dataclass(frozen=True)
class Value:
    """A figure of one item, and the text that the item shares with others."""

    value: float
    text: str


def units(texts: Sequence[str]) -> Units:
    """What an interval over items of these texts speaks about: any such text, or only questions to these."""
    return "texts" if len(set(texts)) >= ENOUGH_TEXTS else "items"


def grouped(values: Sequence[Value]) -> list[list[float]]:
    """By what is independent: texts, or, of fewer than three, items."""
    if units([each.text for each in values]) == "items":
        return [[each.value] for each in values]
    found: dict[str, list[float]] = {}
    for each in values:
        found.setdefault(each.text, []).append(each.value)
    return list(found.values())


def score_interval(differences: Sequence[Value], seed: int) -> Interval:
    """The 95 % interval of the mean of paired differences of scores from 0 to 1, n ≥ 1."""
    groups = grouped(differences)
    values = [each.value for each in differences]
    if len(groups) == len(values) and set(values) <= {-1.0, 0.0, 1.0}:
        return paired_interval(values)
    found = mean_interval(groups, seed)
    if found is None:  # all groups have the same mean
        return alike_interval(sum(values) / len(values), len(groups))
    return max(found[0], -1.0), min(found[1], 1.0)


def nll_interval(differences: Sequence[Value], seed: int) -> Interval | None:
    """The 95 % interval of the mean of paired differences of likelihoods; None of one item, or where all are alike."""
    return mean_interval(grouped(differences), seed)
