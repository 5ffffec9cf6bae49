"""Answers that are one number: the share of the numbers said that are right (LongBench's count and retrieval)."""

from __future__ import annotations

import re

_DIGITS = re.compile(r"\d+")


def count(said: str, truth: str) -> float:
    """Share of the runs of digits said that are ``truth``, 0 if there is none; "07" is not "7"."""
    numbers = _DIGITS.findall(said)
    return numbers.count(truth) / len(numbers) if numbers else 0.0


def retrieval(said: str, truth: str) -> float:
    """The same for the number of a paragraph; ``truth`` is "Paragraph 7", or "段落7" in Chinese."""
    return count(said, "".join(_DIGITS.findall(truth)[:1]))
