"""Intervals of means, against a plain loop and by how often they hold the truth."""

from __future__ import annotations

import random
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.evaluation import bootstrap
from hillinfer.evaluation.bootstrap import ENOUGH, Groups, difference_interval, mean_interval

GROUPS = [[0.0, 1.0], [0.3], [-0.2, 0.9, 0.4], [0.4], [2.0, 1.1], [0.1], [0.7, 0.2], [-1.0], [0.6]]
OTHERS = [[0.5], [0.1], [0.2, 0.3], [0.9], [0.0], [0.4], [0.8, -0.3], [0.2]]


def apart(values: list[float]) -> list[list[float]]:
    return [[value] for value in values]


def slow_interval(groups: Groups, others: Groups, draws: int = 20_000) -> tuple[float, float]:
    drawn = random.Random(5)
    means = []
    for _ in range(draws):
        mine = [value for _ in groups for value in drawn.choice(groups)]
        theirs = [value for _ in others for value in drawn.choice(others)]
        means.append(sum(mine) / len(mine) - sum(theirs) / len(theirs))
    means.sort()
    middle = statistics.mean(v for group in groups for v in group) - statistics.mean(v for each in others for v in each)
    few = min(len(groups), len(others)) if len(others) > 1 else len(groups)
    wider = {8: 2.3646, 9: 2.3060}[few] / 1.96 * (few / (few - 1)) ** 0.5
    low, high = means[draws * 25 // 1000], means[draws * 975 // 1000 - 1]
    return middle + wider * (low - middle), middle + wider * (high - middle)


def held(truth: float, intervals: list[tuple[float, float] | None]) -> float:
    return float(np.mean([found is not None and found[0] <= truth <= found[1] for found in intervals]))


def test_a_plain_loop_finds_the_same() -> None:
    assert mean_interval(GROUPS) == pytest.approx(slow_interval(GROUPS, [[0.0]]), abs=0.03)
    assert difference_interval(GROUPS, OTHERS) == pytest.approx(slow_interval(GROUPS, OTHERS), abs=0.03)


def test_few_groups_of_one_are_students_t_by_hand() -> None:
    values = [0.1, 0.5, 0.9]
    half = 4.303 * statistics.stdev(values) / 3**0.5
    assert mean_interval(apart(values)) == pytest.approx((0.5 - half, 0.5 + half))
    others = [0.2, 0.4]
    wide = 12.706 * (statistics.variance(values) / 3 + statistics.variance(others) / 2) ** 0.5
    assert difference_interval(apart(values), apart(others)) == pytest.approx((0.2 - wide, 0.2 + wide))


@pytest.mark.parametrize("groups", [2, 3, 5, 7, 8, 20])
def test_it_holds_the_true_mean_as_often_as_it_says_where_items_share_a_text(groups: int) -> None:
    rng = np.random.default_rng(groups)
    drawn = [(rng.normal(0.7, 1, (groups, 1)) + rng.normal(0, 0.5, (groups, 5))).tolist() for _ in range(300)]
    assert 0.91 <= held(0.7, [mean_interval(each) for each in drawn]) <= 0.99
    if groups == 20:  # as if all items were independent, as it was once
        flat = [mean_interval(apart([value for group in each for value in group])) for each in drawn]
        assert held(0.7, flat) < 0.75


def test_groups_of_many_sizes_hold_it_as_well() -> None:
    rng = np.random.default_rng(7)
    sizes = [1, 1, 2, 3, 5, 5, 4, 2, 2, 1, 3, 4]
    for some in (sizes, sizes[:6]):
        drawn = [[(0.7 + rng.normal() + rng.normal(0, 0.5, n)).tolist() for n in some] for _ in range(300)]
        assert 0.86 <= held(0.7, [mean_interval(each) for each in drawn]) <= 0.99


def test_the_interval_of_pairs_is_narrower_where_items_differ_more_than_methods() -> None:
    rng = np.random.default_rng(4)
    hard = rng.normal(0, 1, 50)
    mine, full = hard + rng.normal(0.1, 0.05, 50), hard
    paired, unpaired = mean_interval(apart((mine - full).tolist())), difference_interval(apart(mine), apart(full))
    assert paired is not None
    assert unpaired is not None
    assert 0 < paired[0] < 0.1 < paired[1]
    assert unpaired[0] < 0 < unpaired[1]


@given(st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=4), min_size=ENOUGH, max_size=20), st.integers(0, 3))
def test_it_holds_the_mean_and_is_the_same_each_time(groups: list[list[float]], seed: int) -> None:
    found = mean_interval(groups, seed)
    assert found == mean_interval(groups, seed)
    values = [value for group in groups for value in group]
    if found is not None:
        assert found[0] - 1e-9 <= sum(values) / len(values) <= found[1] + 1e-9


@pytest.mark.parametrize("groups", [[[0.3]], [[0.1, 0.9]], [[0.2], [0.2], [0.2]], [[0.1, 0.3], [0.2]], [[0.0]] * 30])
def test_one_group_or_the_same_over_and_over_tells_nothing(groups: Groups) -> None:
    assert mean_interval(groups) is None
    assert difference_interval(groups, GROUPS) is None
    assert difference_interval(GROUPS, groups) is None


def test_many_values_are_drawn_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mean_interval(GROUPS)
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 1000)
    assert mean_interval(GROUPS) == pytest.approx(whole, abs=1e-12)
