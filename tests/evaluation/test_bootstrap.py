"""Intervals, against a plain loop and by how often they hold the truth."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.evaluation import bootstrap
from hillinfer.evaluation.bootstrap import difference_interval, mean_interval

VALUES = [0.0, 1.0, 0.3, -0.2, 0.9, 0.4, 0.4, 2.0]


def slow_interval(values: list[float], others: list[float], draws: int = 20_000) -> tuple[float, float]:
    drawn = random.Random(5)
    means = []
    for _ in range(draws):
        mine = [drawn.choice(values) for _ in values]
        theirs = [drawn.choice(others) for _ in others]
        means.append(sum(mine) / len(mine) - sum(theirs) / len(theirs))
    means.sort()
    return means[draws * 25 // 1000], means[draws * 975 // 1000 - 1]


def test_a_plain_loop_finds_the_same() -> None:
    assert mean_interval(VALUES) == pytest.approx(slow_interval(VALUES, [0.0]), abs=0.03)
    others = [0.5, 0.1, 0.2]
    assert difference_interval(VALUES, others) == pytest.approx(slow_interval(VALUES, others), abs=0.03)


def test_it_holds_the_true_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    intervals = [mean_interval(rng.normal(0.7, 2, size=40).tolist(), seed) for seed in range(300)]
    assert 0.90 <= np.mean([low <= 0.7 <= high for low, high in intervals]) <= 0.98


def test_the_interval_of_pairs_is_narrower_where_items_differ_more_than_methods() -> None:
    rng = np.random.default_rng(4)
    hard = rng.normal(0, 1, 50)
    mine, full = hard + rng.normal(0.1, 0.05, 50), hard
    low, high = mean_interval((mine - full).tolist())
    apart = difference_interval(mine.tolist(), full.tolist())
    assert 0 < low < 0.1 < high
    assert apart[0] < 0 < apart[1]


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.integers(0, 3))
def test_it_lies_within_the_values_and_is_the_same_each_time(values: list[float], seed: int) -> None:
    low, high = mean_interval(values, seed)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    assert (low, high) == mean_interval(values, seed)


def test_many_values_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mean_interval(VALUES)
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 1000)
    assert mean_interval(VALUES) == pytest.approx(whole, abs=1e-12)
