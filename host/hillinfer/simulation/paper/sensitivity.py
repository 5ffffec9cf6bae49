"""Which number of a box a result hangs on: each is moved by a fifth, up and down, and the result worked out again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hillinfer.simulation.hardware import Hardware, Number

STEP = 0.2
_SIZES = {"capacity", "memory", "reserved", "cards", "cores"}
"""What is not a speed: how much fits is another question."""


@dataclass(frozen=True)
class Effect:
    """The result changes by ``up`` and ``down`` (shares of it) when ``number`` is a fifth more or less."""

    number: str
    up: float
    down: float

    @property
    def size(self) -> float:
        return max(abs(self.up), abs(self.down))

    def __str__(self) -> str:
        return f"{self.number} ±{STEP:.0%} moves it by {self.up:+.0%} and {self.down:+.0%}"


def speeds(hardware: Hardware) -> Iterator[tuple[str, Number]]:
    """Rates and delays of a box by the path that ``Hardware.changed`` takes; delays of nothing left out."""
    yield from _walk(hardware.model_dump(), "")


def _walk(table: Mapping[str, Any], path: str) -> Iterator[tuple[str, Number]]:
    for name, value in table.items():
        if isinstance(value, dict) and "value" in value:
            if name not in _SIZES and value["value"] > 0:
                yield path + name, Number(value["value"], value["source"])
        elif isinstance(value, dict):
            yield from _walk(value, f"{path}{name}__")


def effects(hardware: Hardware, result: Callable[[Hardware], float]) -> list[Effect]:
    """Of every speed of the box on the result, the largest first."""
    usual = result(hardware)
    found = []
    for path, number in speeds(hardware):
        up, down = (
            result(hardware.changed(**{path: Number(number * factor, f"{number.source}, times {factor:g}")})) / usual
            - 1
            for factor in (1 + STEP, 1 - STEP)
        )
        found.append(Effect(path.replace("__", "."), up, down))
    return sorted(found, key=lambda effect: -effect.size)


def hangs_on(hardware: Hardware, result: Callable[[Hardware], float], most: int = 2) -> str:
    """In words: the numbers with the largest effect, where it is 1 % and more."""
    told = [str(each) for each in effects(hardware, result)[:most] if each.size >= 0.01]
    return "; ".join(told) or "no speed of the box moves it by 1 %"
