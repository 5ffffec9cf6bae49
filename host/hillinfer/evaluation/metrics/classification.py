"""Few-shot classification: the right class was named, and how many others with it (LongBench)."""

from __future__ import annotations

from collections.abc import Sequence


def classification(said: str, truth: str, classes: Sequence[str]) -> float:
    """1/n if the right class is among the n named, else 0.

    A class whose name is part of the right one's doesn't count as named: "Date" in "Date of birth". Officially the list
    is shortened while it is walked, so the class after one taken out is passed over; so it is here, to score alike.
    """
    named = [name for name in classes if name in said]
    for name in named:
        if name in truth and name != truth:
            named.remove(name)
    return 1 / len(named) if truth in named else 0.0
