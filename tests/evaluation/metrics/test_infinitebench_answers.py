"""InfiniteBench's ways to read an answer, by hand."""

import pytest

from hillinfer.evaluation.metrics.choice import book_choice, code_choice, correct_answer_is
from hillinfer.evaluation.metrics.number_found import first_digits, first_number, last_integer, leading_values
from hillinfer.evaluation.metrics.word import said_name, said_word


@pytest.mark.parametrize(
    ("said", "right"),
    [("71432.", 1), ("is 71432", 1), ("7 1432", 0), ("071432", 0), ("none", 0), ("", 0), ("71432 9", 1)],
)
def test_first_digits(said: str, right: int) -> None:
    assert first_digits(said, "71432") == right


@pytest.mark.parametrize(
    ("said", "truth", "right"),
    [
        ("88", "88", 1),
        ("it is 88.", "88", 1),  # a full stop without a digit is no decimal
        ("88.5", "88", 0),
        ("-88", "88", 1),  # signs are not read
        ("8.25", "8.25", 1),
        ("8", "8.0", 1),
        ("none", "8", 0),
    ],
)
def test_first_number(said: str, truth: str, right: int) -> None:
    assert first_number(said, truth) == right


@pytest.mark.parametrize(
    ("said", "right"),
    [("func(2) = -14", 1), ("-14.", 1), ("`-14`", 1), ("-14 or 3", 0), ("14", 0), ("minus", 0), ("", 0)],
)
def test_last_integer(said: str, right: int) -> None:
    assert last_integer(said, "-14") == right


def test_leading_values() -> None:
    # right: 1 4 8 2. Said 1 4 9 2: two before the first wrong one, 2/4, whatever comes after it
    assert leading_values("[1, 4, 9, 2]", ["1", "4", "8", "2"]) == 0.5
    assert leading_values("1 4 8 2 17", ["1", "4", "8", "2"]) == 1.0
    assert leading_values("", ["1"]) == 0.0
    assert leading_values("04, " + "9" * 5000, ["4", "8"]) == 0.5  # more digits than int() reads
    # signs are not read, so the values end at the first below 0
    assert leading_values("3, -1, 5", ["3", "-1", "5"]) == pytest.approx(1 / 3)


def test_words() -> None:
    assert said_word('The value is: "c14c-b8ba".', "c14c-b8ba") == 1.0
    assert said_word("c14c-b8baX", "c14c-b8ba") == 0.0
    assert said_name("It is Gaggi, I think", "GAGGI") == 1.0
    assert said_name("Gaggis", "GAGGI") == 0.0
    assert said_name("Ace Rothstein", "ACE ROTHSTEIN") == 0.0  # a name of two words is never one word, as officially


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("C", 1),
        ("C. Snowfield", 1),
        ("B", 0),
        ("Chapel", 1),  # the first letter is all that is looked at
        ("Snowfield", 1),
        ("The answer is: C", 1),
        ("I think the answer is B", 0),
        ("My answer:", 0),
        ("so it must be C then", 1),
        ("so it must be B or C", 0),  # the first letter that is a word
        ("no idea", 0),
        ("", 0),
    ],
)
def test_book_choice(said: str, right: int) -> None:
    assert book_choice(said, ("Snowfield", "C")) == right


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("C. parse", 1),
        ("C: parse", 1),
        ("C", 0),  # a bare letter is no answer here
        ("The correct option is: C", 1),
        ("the answer is: parse", 1),
        ("The error is in: C", 0),
        ("The bug is: **C**", 1),  # marks become spaces, and spaces one
        ("answer: B", 0),
        ("", 0),
    ],
)
def test_code_choice(said: str, right: int) -> None:
    assert code_choice(said, ("parse", "C")) == right


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        ("The correct answer is (B).", "B"),
        ("**The correct answer is D**", "D"),
        ("The correct answer is (E)", None),
        ("the correct answer is B", None),
        ("The correct answer is A, no: The correct answer is (C)", "C"),  # one in brackets goes before
        ("B", None),
    ],
)
def test_correct_answer_is(said: str, letter: str | None) -> None:
    assert correct_answer_is(said) == letter
