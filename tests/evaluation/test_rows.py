"""Rows by hand: means, paired differences, what counts, what is undefined."""

from __future__ import annotations

import pytest

from hillinfer.evaluation.proportions import paired_interval
from hillinfer.evaluation.rows import with_intervals
from tests.evaluation.made_up import made_up


def test_means_and_differences_are_of_the_same_items() -> None:
    full, ours, undefined, *_ = made_up([1.0, 0.0, 1.0, 0.5]).rows
    assert (full.contender, ours.contender, undefined.contender) == ("full", "hillinfer@10%", "heterocache@50%")
    assert (ours.score, ours.full_score, ours.items) == (0.625, 1, 4)
    assert ours.difference == -0.375
    assert ours.interval[0] < -0.375 < ours.interval[1]
    assert ours.nll_difference == pytest.approx(0.75)
    assert ours.kl == pytest.approx(0.1)
    assert ours.by_label == {"depth": {"0": 1, "0.25": 0, "0.5": 1, "0.75": 0.5}}
    assert (ours.device_bytes, ours.hot_bytes, ours.fast_bytes) == (100, 10, 110)
    assert (undefined.note, undefined.score, undefined.items) == ("it has no profile", None, 0)


def test_a_task_the_full_cache_fails_does_not_count() -> None:
    assert [row.counts for row in made_up([1.0, 0.0], [1.0, 0.0]).rows[:2]] == [True, True]
    assert [row.counts for row in made_up([1.0, 1.0, 1.0], [1.0, 0.0, 0.0]).rows[:2]] == [False, False]


def test_what_is_the_same_differs_by_nothing_for_sure_only_of_the_full_cache() -> None:
    full, row, *_ = made_up([1.0, 1.0]).rows
    assert (full.difference, full.interval, full.nll_interval) == (0, (0, 0), (0, 0))
    assert (row.difference, row.nll_interval) == (0, None)
    assert row.interval == pytest.approx((-0.658, 0.658), abs=1e-3)  # z²/(2 + z²)


def test_items_of_one_text_are_said_to_be() -> None:
    results = made_up([1.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    assert [(row.texts, row.interval_of) for row in results.rows[:2]] == [(6, "texts")] * 2
    for item in results.items:
        item.text = str(int(item.identity) // 3)
    again = with_intervals(results).rows[1]
    assert (again.texts, again.interval_of, again.interval) == (2, "items", results.rows[1].interval)
    for item in results.items:
        item.text = str(int(item.identity) // 2)
    apart = with_intervals(results).rows[1]
    assert (apart.texts, apart.interval_of) == (3, "texts")
    assert apart.interval[1] - apart.interval[0] > again.interval[1] - again.interval[0]


def test_intervals_are_made_anew_and_nothing_else() -> None:
    results = made_up([1.0, 0.0, 1.0, 0.5])
    old = results.model_copy(deep=True)
    for row in old.rows[:2]:
        row.interval, row.nll_interval = (0.0, 0.0), (-1.0, 1.0)
    assert with_intervals(old) == results
    assert old.rows[1].interval == (0, 0)  # not in place


def test_retrieval_rows_that_count_are_taken_together() -> None:
    results = made_up([1.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    (ours,) = results.retrieval
    assert (ours.policy, ours.budget, ours.rows, ours.items, ours.texts) == ("hillinfer", 0.1, 2, 12, 12)
    assert ours.difference == pytest.approx(-1 / 6)
    assert ours.interval == paired_interval([-1.0] * 2 + [0.0] * 10)
    row = results.rows[1]
    assert ours.interval[1] - ours.interval[0] < row.interval[1] - row.interval[0]
    assert made_up([1.0, 0.0], [0.0, 0.0]).retrieval == []  # the full cache fails
    for item in results.items:
        item.text = "one of each context"
    assert with_intervals(results).retrieval[0].texts == 2
