"""ROUGE-L as LongBench takes it: F of the package ``rouge``, per summary.

Sentences end at full stops. Of each right sentence the longest common subsequence with every sentence said is found;
the union of all their words, each word once, over the different words of each side gives recall and precision.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hillinfer.evaluation.metrics.chinese import words
from hillinfer.evaluation.metrics.needed import needed


def rouge_l(said: str, truth: str) -> float:
    """F of ROUGE-L, English; 0 where one side has no sentence."""
    rouge = needed("rouge").Rouge(metrics=["rouge-l"])
    with _deep(len(said.split()) + len(truth.split())):
        try:
            return float(rouge.get_scores([said], [truth], avg=True)["rouge-l"]["f"])
        except (ValueError, ZeroDivisionError):  # nothing but full stops, or spaces, on one side
            return 0.0


def rouge_l_chinese(said: str, truth: str) -> float:
    """The same over words as jieba cuts them."""
    return rouge_l(" ".join(words(said)), " ".join(words(truth)))


@contextmanager
def _deep(steps: int) -> Iterator[None]:
    """The package walks a subsequence by recursion: as deep as both texts are long, whoever calls."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(before + 2 * steps)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
