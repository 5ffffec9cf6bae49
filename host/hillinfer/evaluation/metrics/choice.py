"""Multiple choice: which letter was meant (InfiniteBench's books and code, LongBench v2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LETTERS = "ABCD"
_BOOK_PREFIXES = ("answer is:", "answer:", "answer is", "option is")
_CODE_PREFIXES = ("answer is:", "is:", "answer:", "correct option is:")


def book_choice(said: str, truth: Sequence[str]) -> float:
    """1 if the option was chosen; ``truth`` is (its text, its letter).

    In this order: the first letter if it is A to D, the option's exact text, what follows "answer is" and its like, the
    first word that is a letter or a run of them ("AB").
    """
    said = said.strip()
    if said[:1] and said[0] in _LETTERS:
        return float(said[0] in truth)
    if said in truth:
        return float(bool(said))
    said = re.sub(r" +", " ", re.sub(r"[\n\"'.,?!{}]", " ", said))
    for prefix in _BOOK_PREFIXES:
        if prefix in said:
            return _follows(said, prefix, truth)
    word = next((word for word in said.split() if word in _LETTERS), None)
    return float(word in truth)


def code_choice(said: str, truth: Sequence[str]) -> float:
    """1 if the function was chosen; ``truth`` is (its name, its letter). "C." or "C:" first, or after "answer is:"."""
    said = said.strip()
    if said[:2] in (f"{truth[1]}.", f"{truth[1]}:"):
        return 1.0
    said = re.sub(r" +", " ", re.sub(r"[\n`'\"*-]|Option|option", " ", said))
    for prefix in _CODE_PREFIXES:
        if prefix in said:
            return _follows(said, prefix, truth)
    return 0.0


def _follows(said: str, prefix: str, truth: Sequence[str]) -> float:
    """What was said after ``prefix`` and one more character begins with the letter or the text."""
    return float(said[said.find(prefix) + len(prefix) + 1 :].startswith(tuple(truth)))


def correct_answer_is(said: str) -> str | None:
    """The letter in "The correct answer is (C)" or "The correct answer is C", in bold or not; None without one."""
    said = said.replace("*", "")
    found = re.search(r"The correct answer is \(([A-D])\)", said) or re.search(r"The correct answer is ([A-D])", said)
    return found.group(1) if found else None
