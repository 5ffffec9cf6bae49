"""What is evaluated together: tasks, each with its lengths and number of items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hillinfer.evaluation import registry


@dataclass(frozen=True)
class Part:
    """One task at some context lengths, tokens; limit: items at most of each, None: as many as the task has."""

    task: str
    lengths: tuple[int, ...]
    limit: int | None = None


def plan_of(tasks: Sequence[str], lengths: Sequence[int], limit: int | None) -> list[Part]:
    """The same lengths and limit for every task, and every subset of a data set; SettingError for an unknown one.

    Each once, however often it is named: an item that counts twice would make intervals too narrow.
    """
    parts = dict.fromkeys(part for task in tasks for part in registry.parts(task))
    return [Part(part, tuple(dict.fromkeys(lengths)), limit) for part in parts]


SMALL = [
    Part("text", (4096, 8192), 3),
    Part("passkey", (1024,), 10),
    Part("passkey", (2048,), 5),
    Part("passkey", (4096,), 2),
    Part("needle", (1024, 2048, 4096, 8192), 5),
    Part("multi-key", (2048,), 3),
    Part("multi-query", (2048,), 2),
    Part("multi-value", (2048,), 2),
    Part("tracking", (2048,), 2),
    Part("common-words", (2048,), 1),
    Part("frequent-words", (2048,), 1),
]
"""For SmolLM2 in 45 minutes on two cores: as many texts as there are of the built-in document, and two items at most
where the full cache scores under 50 % (decision 69)."""
