"""How many of the papers' statements hold: the count that terminal, JSON, report and documents share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Held:
    """Statements with a number: all of them; those that every value of ours meets; those that only some meet."""

    with_number: int
    whole: int
    in_part: int

    def __str__(self) -> str:
        return (
            f"Of {self.with_number} statements with a number {self.whole} hold in every value and {self.in_part} in "
            "some."
        )


def held(values: Iterable[tuple[str, bool]]) -> Held:
    """Of every value of ours that a statement gives a number for: the statement, and whether the value meets it."""
    found: dict[str, list[bool]] = {}
    for statement, met in values:
        found.setdefault(statement, []).append(met)
    every = list(found.values())
    return Held(len(every), sum(map(all, every)), sum(any(met) and not all(met) for met in every))
