"""Rows by hand: means, paired differences, what counts, what is undefined."""

from __future__ import annotations

import pytest

from tests.evaluation.made_up import made_up


def test_means_and_differences_are_of_the_same_items() -> None:
    full, ours, undefined, *_ = made_up([1.0, 0.0, 1.0, 0.5]).rows
    assert (full.contender, ours.contender, undefined.contender) == ("full", "hillinfer@10%", "heterocache@50%")
    assert (ours.score, ours.full_score, ours.items) == (0.625, 1, 4)
    assert ours.difference == -0.375
    assert ours.interval[0] < -0.375 < ours.interval[1] <= 0
    assert ours.nll_difference == pytest.approx(0.75)
    assert ours.kl == pytest.approx(0.1)
    assert ours.by_label == {"depth": {"0": 1, "0.25": 0, "0.5": 1, "0.75": 0.5}}
    assert (ours.device_bytes, ours.hot_bytes, ours.fast_bytes) == (100, 10, 110)
    assert (undefined.note, undefined.score, undefined.items) == ("it has no profile", None, 0)


def test_a_task_the_full_cache_fails_does_not_count() -> None:
    assert [row.counts for row in made_up([1.0, 0.0], [1.0, 0.0]).rows[:2]] == [True, True]
    assert [row.counts for row in made_up([1.0, 1.0, 1.0], [1.0, 0.0, 0.0]).rows[:2]] == [False, False]


def test_what_is_the_same_differs_by_nothing() -> None:
    row = made_up([1.0, 1.0]).rows[1]
    assert (row.difference, row.interval, row.nll_interval) == (0, (0, 0), (0, 0))
