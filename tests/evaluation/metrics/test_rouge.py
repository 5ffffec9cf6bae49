"""ROUGE by hand. LCS: longest common subsequence, words in order with gaps."""

import sys

import pytest

from hillinfer.evaluation.metrics.rouge_l import rouge_l, rouge_l_chinese
from hillinfer.evaluation.metrics.rouge_lsum import rouge_lsum


def test_one_sentence() -> None:
    # said: the cat sat down (4 words); right: the cat sat on the mat (5 different words: the counts once).
    # LCS: the cat sat = 3. P = 3/4, R = 3/5, F = 2·(9/20)/(27/20) = 2/3
    assert rouge_l("the cat sat down", "the cat sat on the mat") == pytest.approx(2 / 3, abs=1e-6)


def test_union_over_sentences() -> None:
    # right: "a b c d e"; said: "a b x. a c e y" (full stops end sentences). LCS with the first: a b, with the second:
    # a c e; union a b c e = 4. Different words said: a b x c e y = 6. P = 4/6, R = 4/5, F = 2·(8/15)/(22/15) = 8/11
    assert rouge_l("a b x. a c e y.", "a b c d e") == pytest.approx(8 / 11, abs=1e-6)


@pytest.mark.parametrize(("said", "truth"), [("", "a b"), ("...", "a b"), ("a b", "c d"), ("a", "")])
def test_nothing_in_common(said: str, truth: str) -> None:
    assert rouge_l(said, truth) == 0.0


def test_chinese() -> None:
    # said 我/爱/北京, right 我/爱/上海/和/北京: LCS 我 爱 北京 = 3. P = 3/3, R = 3/5, F = 2·(3/5)/(8/5) = 3/4
    assert rouge_l_chinese("我爱北京", "我爱上海和北京") == pytest.approx(3 / 4, abs=1e-6)


def test_long_texts_need_no_deeper_stack_from_the_caller() -> None:
    before = sys.getrecursionlimit()
    text = " ".join(f"w{number}" for number in range(700))
    assert rouge_l(text, text) == pytest.approx(1, abs=1e-6)
    assert sys.getrecursionlimit() == before


def test_lsum() -> None:
    # Lines are sentences. right: "a b c d e" (5 words); said: "a b x" and "a c e y" (7 words). Union of the LCS: a b c
    # e; each counts once, as said and right both have it. P = 4/7, R = 4/5, F = 2·(16/35)/(48/35) = 2/3
    assert rouge_lsum("a b x\na c e y", "a b c d e") == pytest.approx(2 / 3)
    # dashes part words, case does not matter, nothing is stemmed
    assert rouge_lsum("The Well-Known cats", "well known cat") == pytest.approx(4 / 7)  # 2 of 4 said, 2 of 3 right
    assert rouge_lsum("", "a") == 0.0
