"""Names and lines of SystemVerilog."""

from __future__ import annotations

import re
from pathlib import Path

_KEYWORDS = frozenset((Path(__file__).parent / "keywords.txt").read_text().split())


class Names:
    """Hands out names that are legal and used once in a module."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = set(taken) | _KEYWORDS

    def unique(self, wanted: str) -> str:
        base = identifier(wanted)
        name, number = base, 1
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        return name


def identifier(text: str) -> str:
    text = re.sub(r"\W+", "_", text).strip("_")
    return text if text and not text[0].isdigit() else f"x{text}"


def port_name(text: str) -> str:
    """A parameter's name as a port: its own, unless SystemVerilog reserves that."""
    return f"{text}_" if text in _KEYWORDS or text in ("clock", "reset", "start", "done") else text


def declare(width: int, name: str) -> str:
    return f"logic [{width - 1}:0] {name};" if width > 1 else f"logic {name};"


def port(direction: str, width: int, name: str) -> str:
    return f"{direction} logic [{width - 1}:0] {name}" if width > 1 else f"{direction} logic {name}"


def indent(lines: list[str], by: int = 2) -> list[str]:
    return [f"{' ' * by}{line}" if line else "" for line in lines]
