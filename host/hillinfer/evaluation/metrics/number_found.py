"""Answers that are numbers, as InfiniteBench reads them out of what was said."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

_NUMBER = re.compile(r"\d+\.\d+|\d+")
_DIGITS = re.compile(r"[0-9]+")


def first_digits(said: str, truth: str) -> float:
    """1 if the first run of digits is ``truth``, leading zeros and all: a pass key, a number in a text."""
    found = _DIGITS.search(said)
    return float(found is not None and found.group() == truth)


def first_number(said: str, truth: str) -> float:
    """1 if the first number, signs apart, equals ``truth``, a number as JSON writes it.

    "5" and "5.0" are right for 5.0, and "5" alone for 5. Officially decimals said for an integer stop the run; here
    they are wrong.
    """
    found, value = _NUMBER.search(said), json.loads(truth)
    if found is None:
        return 0.0
    whole = "." not in found.group()
    return float((whole or isinstance(value, float)) and float(found.group()) == value)


def last_integer(said: str, truth: str) -> float:
    """1 if the last word is the integer ``truth``: what a function returns. ". ` ' " :" and line ends part words."""
    words = re.sub(r"[\n.`'\":]", " ", said).split()
    try:
        return float(bool(words) and int(words[-1]) == int(truth))
    except ValueError:
        return 0.0


def leading_values(said: str, truth: Sequence[str]) -> float:
    """Share of ``truth`` that was said before the first wrong value: intermediate results of a long sum.

    Officially digits alone are read, so a value below 0 is never right; so it is here, to score alike.
    """
    right = 0
    for number, expected in zip(_DIGITS.findall(said), truth, strict=False):
        if (number.lstrip("0") or "0") != str(int(expected)):  # int() of what was said refuses thousands of digits
            break
        right += 1
    return right / len(truth)
