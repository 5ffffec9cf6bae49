"""Two results beside each other: the same items are paired, others are not."""

from __future__ import annotations

import pytest

from hillinfer.evaluation.comparison import change
from tests.evaluation.made_up import made_up

SCORES = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]
BETTER = [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]


def test_the_same_items_are_paired() -> None:
    first, other = made_up(SCORES), made_up(BETTER)
    found = change(first, other, other.rows[1])
    assert found is not None
    assert found.paired
    assert found.score == pytest.approx(1 / 8)
    assert found.nll == pytest.approx(-2 / 8)
    assert found.score_interval[0] < 0 < 1 / 8 < found.score_interval[1]  # only one item differs


def test_other_items_are_compared_as_samples() -> None:
    first, other = made_up(SCORES), made_up(BETTER, prompts="other")
    found = change(first, other, other.rows[1])
    assert found is not None
    assert not found.paired
    assert found.score == pytest.approx(1 / 8)
    assert found.score_interval[0] < 0 < found.score_interval[1]


def test_items_that_only_one_file_has_are_left_out() -> None:
    first, other = made_up(SCORES[:3]), made_up(BETTER)
    for item in [*first.items, *other.items]:
        item.labels = {}
    found = change(first, other, other.rows[1])
    assert found is not None
    assert (found.items, found.paired, found.score) == (3, True, 0)


def test_nothing_to_compare_with() -> None:
    first, other = made_up(SCORES), made_up(SCORES)
    assert change(first, other, other.rows[2]) is None  # undefined
