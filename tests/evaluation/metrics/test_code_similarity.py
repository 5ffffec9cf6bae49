"""Likeness of a line of code, by hand: 1 − edits/(both lengths); edits take a character out or put one in."""

import pytest

from hillinfer.evaluation.metrics.code_similarity import code_similarity


@pytest.mark.parametrize(
    ("said", "truth", "expected"),
    [
        ("return x", "return x", 1.0),
        # 8 and 8 characters; x out, y in: 2 edits of 16: 1 − 2/16 = 0.875, in whole per cents 88 (87.5 is between 87
        # and 88: the even one)
        ("return x", "return y", 0.88),
        # 3 and 4 characters, one put in: 1 − 1/7 = 0.857…, 86 per cent
        ("abc", "abcd", 0.86),
        ("abc", "xyz", 0.0),
        ("", "abc", 0.0),
        # the first line without a mark of comments or fences counts
        ("\n\n```python\n# next\nreturn x\nreturn y", "return x", 1.0),
        ("a // b\nreturn x", "return x", 1.0),
        ("# only a comment", "return x", 0.0),
        # lines at the beginning are taken off, one with a space isn't: it is the first line, of one character: 1 − 3/5
        (" \nabcd", "a bc", 0.4),
    ],
)
def test_by_hand(said: str, truth: str, expected: float) -> None:
    assert code_similarity(said, truth) == expected


def test_is_the_ratio_of_two_texts_by_their_common_subsequence() -> None:
    """Slow oracle: edits without exchanges are both lengths less twice the longest common subsequence."""
    pairs = [("for i in range(3):", "for j in range(4):"), ("print(a)", "printf(a);"), ("x = foo(1)", "y = food(2, 1)")]
    for said, truth in pairs:
        share = 2 * _common(said, truth) / (len(said) + len(truth))
        assert code_similarity(said, truth) == round(100 * share) / 100


def _common(a: str, b: str) -> int:
    if not a or not b:
        return 0
    row = [0] * (len(b) + 1)
    for mine in a:
        previous = row
        row = [0]
        for at, theirs in enumerate(b, 1):
            row.append(previous[at - 1] + 1 if mine == theirs else max(previous[at], row[-1]))
    return row[-1]
