"""LongBench's counting, retrieval and classification, by hand."""

import pytest

from hillinfer.evaluation.metrics.classification import classification
from hillinfer.evaluation.metrics.number_share import count, retrieval


def test_count() -> None:
    assert count("There are 12 paragraphs", "12") == 1.0
    assert count("12, or perhaps 13 of 30", "12") == pytest.approx(1 / 3)  # one of three numbers said is right
    assert count("12 and 12 and 7", "12") == pytest.approx(2 / 3)
    assert count("012", "12") == 0.0  # numbers are compared as they are written
    assert count("a dozen", "12") == 0.0


def test_retrieval() -> None:
    assert retrieval("Paragraph 7", "Paragraph 7") == 1.0
    assert retrieval("The answer is 7", "Paragraph 7") == 1.0
    assert retrieval("Paragraph 7, not Paragraph 17", "Paragraph 7") == 0.5
    assert retrieval("段落3", "段落3") == 1.0
    assert retrieval("段落3或段落5或段落6", "段落5") == pytest.approx(1 / 3)
    assert retrieval("none of them", "Paragraph 7") == 0.0


def test_classification() -> None:
    classes = ["Date", "Number", "Date of birth", "City"]
    assert classification("Number", "Number", classes) == 1.0
    assert classification("Number or City", "City", classes) == 0.5  # one of two named
    assert classification("Person", "City", classes) == 0.0
    assert classification("City", "Number", classes) == 0.0
    # "Date" is named whenever "Date of birth" is, and does not count beside it
    assert classification("Date of birth", "Date of birth", classes) == 1.0


def test_classification_passes_over_the_class_after_one_taken_out() -> None:
    # named: a, ab, abc, all part of what was said. Walking: a is part of abc and goes; ab now stands where a stood and
    # is passed over; so ab and abc are left, and the right one is one of two, as officially
    assert classification("abc", "abc", ["a", "ab", "abc"]) == 0.5
