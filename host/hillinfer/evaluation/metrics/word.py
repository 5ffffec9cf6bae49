"""Answers that are one word of what was said (InfiniteBench's key-value retrieval and dialogues)."""

from __future__ import annotations

import re

_VALUE = re.compile(r"[\n:\"'.,?!{}]")


def said_word(said: str, truth: str) -> float:
    """1 if ``truth`` is one of the words, parted by spaces and : " ' . , ? ! { }."""
    return float(truth in _VALUE.sub(" ", said).split())


def said_name(said: str, truth: str) -> float:
    """The same of upper-case words: the name of a character in a script."""
    return said_word(said.upper(), truth)
