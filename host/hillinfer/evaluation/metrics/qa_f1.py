"""Question answering: F1 of the words of what was said and of the right answer, both normalised."""

from __future__ import annotations

from hillinfer.evaluation.metrics.chinese import words
from hillinfer.evaluation.metrics.f1 import f1
from hillinfer.evaluation.metrics.normal import normal_chinese, normal_english


def qa_f1(said: str, truth: str) -> float:
    """English: words between spaces."""
    return f1(normal_english(said).split(), normal_english(truth).split())


def qa_f1_chinese(said: str, truth: str) -> float:
    """Chinese: words as jieba cuts them, punctuation taken off each and empty ones dropped (LongBench)."""
    return f1(*([word for word in map(normal_chinese, words(text)) if word] for text in (said, truth)))


def qa_f1_characters(said: str, truth: str) -> float:
    """Chinese, one character a word (InfiniteBench)."""
    return f1(normal_chinese(said), normal_chinese(truth))
