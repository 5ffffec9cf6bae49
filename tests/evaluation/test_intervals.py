"""What a row's interval is made of: texts where there are enough, else items, and never of width nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.evaluation.bootstrap import mean_interval
from hillinfer.evaluation.intervals import Value, grouped, nll_interval, score_interval, units
from hillinfer.evaluation.proportions import alike_interval, paired_interval


def values(*groups: list[float]) -> list[Value]:
    return [Value(value, str(text)) for text, group in enumerate(groups) for value in group]


def test_three_texts_are_enough_to_speak_about_texts() -> None:
    three = values([0.1, 0.2], [0.3], [0.5, 0.6])
    assert (units([each.text for each in three]), grouped(three)) == ("texts", [[0.1, 0.2], [0.3], [0.5, 0.6]])
    two = three[:3]
    assert (units([each.text for each in two]), grouped(two)) == ("items", [[0.1], [0.2], [0.3]])
    assert nll_interval(three, 0) == mean_interval([[0.1, 0.2], [0.3], [0.5, 0.6]])
    assert nll_interval(two, 0) == mean_interval([[0.1], [0.2], [0.3]])


def test_right_or_wrong_by_the_item_is_tangos() -> None:
    assert score_interval(values([0, 0, 0, 0, -1]), 0) == paired_interval([0, 0, 0, 0, -1])
    assert score_interval(values([0], [0], [-1], [0]), 0) == paired_interval([0, 0, -1, 0])


def test_texts_that_all_did_the_same_are_so_many_trials() -> None:
    assert score_interval(values([0, 0], [0, 0], [0]), 0) == alike_interval(0, 3)
    assert score_interval(values([1 / 3], [1 / 3]), 0) == alike_interval(1 / 3, 2)
    assert nll_interval(values([0.0], [0.0], [0.0]), 0) is None
    assert nll_interval(values([0.4]), 0) is None


def test_what_scores_cannot_reach_is_not_said() -> None:
    assert score_interval(values([-1 / 3], [-1]), 0) == (-1, 1)


@given(st.lists(st.lists(st.sampled_from([-1, -0.5, 0, 0.5, 1]), min_size=1, max_size=4), min_size=1, max_size=12))
def test_of_scores_there_is_always_one_with_a_width_around_the_mean(groups: list[list[float]]) -> None:
    found = values(*groups)
    low, high = score_interval(found, 1)
    mean = sum(each.value for each in found) / len(found)
    assert -1 - 1e-9 <= low <= mean + 1e-9
    assert mean - 1e-9 <= high <= 1 + 1e-9
    assert high - low > 0.01


@pytest.mark.parametrize("count", [2, 40])
def test_one_more_question_about_the_same_texts_says_nothing_new(count: int) -> None:
    once = [Value(text * 0.1, str(text)) for text in range(10)]
    many = [each for each in once for _ in range(count)]
    assert nll_interval(many, 0) == pytest.approx(nll_interval(once, 0))
