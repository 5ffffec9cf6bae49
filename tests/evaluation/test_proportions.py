"""Intervals of right-or-wrong scores: against a search over all shares, and by how often they hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.evaluation.proportions import alike_interval, paired_interval

Z = 1.959964


def differences(gains: int, losses: int, items: int) -> list[float]:
    return [1.0] * gains + [-1.0] * losses + [0.0] * (items - gains - losses)


def slow_interval(gains: int, losses: int, items: int) -> tuple[float, float]:
    """Differences on a grid that the score test does not refuse; the likeliest share of losses by trying all."""
    held = []
    for difference in np.linspace(-1, 1, 801):
        lost = np.linspace(max(0.0, -difference), (1 - difference) / 2, 2001)
        same = np.clip(1 - difference - 2 * lost, 0, 1)
        likelihood = np.zeros_like(lost)
        for count, share in ((gains, lost + difference), (losses, lost), (items - gains - losses, same)):
            if count:
                likelihood += count * np.log(np.maximum(share, 1e-300))
        best = lost[likelihood.argmax()]
        spread = math.sqrt(max(items * (2 * best + difference - difference**2), 1e-12))
        if abs(gains - losses - items * difference) <= Z * spread + 1e-9:
            held.append(difference)
    return min(held), max(held)


@pytest.mark.parametrize(
    ("gains", "losses", "items"), [(0, 0, 5), (0, 1, 5), (2, 1, 5), (0, 5, 5), (1, 0, 1), (3, 9, 40), (0, 4, 10)]
)
def test_a_search_over_all_shares_finds_the_same(gains: int, losses: int, items: int) -> None:
    found = paired_interval(differences(gains, losses, items))
    assert found == pytest.approx(slow_interval(gains, losses, items), abs=0.006)


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=40))
def test_it_holds_the_mean_has_a_width_and_mirrors(values: list[float]) -> None:
    low, high = paired_interval(values)
    mean = sum(values) / len(values)
    assert -1 <= low <= mean <= high <= 1
    assert high - low > 3 / (len(values) + 4)
    assert paired_interval([-value for value in values]) == pytest.approx((-high, -low), abs=1e-9)


@pytest.mark.parametrize("value", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("items", [1, 5, 20])
def test_of_items_that_are_alike_both_say_the_same(value: float, items: int) -> None:
    assert paired_interval([value] * items) == pytest.approx(alike_interval(value, items), abs=1e-6)


@given(st.floats(-1, 1), st.integers(1, 50))
def test_what_is_alike_keeps_within_what_scores_allow(value: float, items: int) -> None:
    low, high = alike_interval(value, items)
    assert -1 - 1e-9 <= low <= value <= high <= 1 + 1e-9


@pytest.mark.parametrize("lost", [0.0, 0.05, 0.2, 0.5])
@pytest.mark.parametrize("gained", [0.0, 0.1])
@pytest.mark.parametrize("items", [4, 8, 25])
def test_it_holds_the_truth_as_often_as_it_says(gained: float, lost: float, items: int) -> None:
    """All outcomes, each as likely as it is."""
    holds = 0.0
    for gains in range(items + 1):
        for losses in range(items + 1 - gains):
            low, high = paired_interval(differences(gains, losses, items))
            rest = items - gains - losses
            ways = math.factorial(items) / math.prod(map(math.factorial, (gains, losses, rest)))
            likely = ways * gained**gains * lost**losses * (1 - gained - lost) ** rest
            holds += likely * (low - 1e-9 <= gained - lost <= high + 1e-9)
    assert holds >= 0.90
