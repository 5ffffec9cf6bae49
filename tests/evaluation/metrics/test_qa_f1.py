"""F1 of answers, by hand: P = common/said, R = common/right, F = 2·P·R / (P + R)."""

import pytest

from hillinfer.evaluation.metrics.chinese import words
from hillinfer.evaluation.metrics.f1 import f1
from hillinfer.evaluation.metrics.normal import normal_chinese, normal_english
from hillinfer.evaluation.metrics.qa_f1 import qa_f1, qa_f1_characters, qa_f1_chinese


def test_normal_english() -> None:
    # lower case first, then punctuation goes (the dots of "U.S." join its letters), then articles, then spaces
    assert normal_english("The  U.S., (an ally) in a 1999-war!") == "us ally in 1999war"
    assert normal_english("Theatre") == "theatre"  # "the" is an article only as a whole word


def test_normal_chinese() -> None:
    assert normal_chinese("“红楼梦”， 是 Cao 写的。") == "红楼梦是cao写的"
    assert normal_chinese("《红楼梦》") == "《红楼梦"  # the official list has 》 and not 《


@pytest.mark.parametrize(
    ("said", "truth", "expected"),
    [
        ("Paris", "Paris", 1.0),
        ("The Paris.", "paris", 1.0),  # article, dot and case make no difference
        # said: [it, is, in, paris, france], right: [paris]. P = 1/5, R = 1/1, F = 2·(1/5)/(6/5) = 1/3
        ("It is in Paris, France", "Paris", 1 / 3),
        # said: [new, york], right: [new, york, city]. P = 2/2, R = 2/3, F = 2·(2/3)/(5/3) = 4/5
        ("New York", "New York City", 4 / 5),
        # words count as often as both have them: said [no, no, no], right [no, no]: common 2, P = 2/3, R = 1, F = 4/5
        ("no no no", "no no", 4 / 5),
        ("London", "Paris", 0.0),
        ("", "Paris", 0.0),
        ("the", "a", 0.0),  # nothing left on either side: no common word
    ],
)
def test_english(said: str, truth: str, expected: float) -> None:
    assert qa_f1(said, truth) == pytest.approx(expected)


def test_chinese_words() -> None:
    # jieba's dictionary has 北京大学 as one word. Without the full stop 3 words were said, one is right, and it is all:
    # P = 1/3, R = 1, F = 2·(1/3)/(4/3) = 1/2
    assert words("北京大学在北京。") == ["北京大学", "在", "北京", "。"]
    assert qa_f1_chinese("北京大学在北京。", "北京大学") == pytest.approx(1 / 2)
    assert qa_f1_chinese("。", "北京") == 0.0


def test_chinese_characters() -> None:
    # said 红,楼,梦 and right 石,头,记: nothing; said 胡,斐,了 and right 胡,斐: P = 2/3, R = 1, F = 4/5
    assert qa_f1_characters("红楼梦", "石头记") == 0.0
    assert qa_f1_characters("胡斐了。", "胡 斐") == pytest.approx(4 / 5)


def test_f1_of_bags() -> None:
    assert f1([], []) == 0.0
    assert f1("aab", "ab") == pytest.approx(4 / 5)  # common a, b: P = 2/3, R = 1
