"""Times of things that are compared: taken in turns, so that what drifts on a machine hits all of them alike."""

from __future__ import annotations

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence


class Contender(ABC):
    """Something that does one step after another, such as decoding with one cache.

    block   steps in a block, if not as many as the others have: for what is so slow that few are enough
    """

    label: str
    block: int | None = None

    def prepare(self) -> None:  # noqa: B027  # most need nothing
        """Called before a block of steps, untimed."""

    @abstractmethod
    def step(self) -> None:
        """The next step."""


def in_turns(
    contenders: Sequence[Contender],
    *,
    rounds: int,
    block: int,
    warm: int = 1,
    on_progress: Callable[[str], None] = lambda _: None,
) -> list[list[float]]:
    """Seconds of ``rounds · block`` steps of each contender (or of its own ``block``), in the order given.

    In every round each has a block of steps, another one first each time. Before a block ``warm`` steps are not
    counted: they find the processor's caches full of what another contender left there.
    """
    seconds: list[list[float]] = [[] for _ in contenders]
    for number in range(rounds):
        for turn in range(len(contenders)):
            index = (turn + number) % len(contenders)
            contender = contenders[index]
            on_progress(f"round {number + 1} of {rounds}: {contender.label}")
            contender.prepare()
            for _ in range(warm):
                contender.step()
            for _ in range(contender.block or block):
                start = time.perf_counter()
                contender.step()
                seconds[index].append(time.perf_counter() - start)
    return seconds


def median_ms(seconds: Sequence[float]) -> float:
    """The median in milliseconds."""
    return statistics.median(seconds) * 1e3


def p95_ms(seconds: Sequence[float]) -> float:
    """The 95th percentile in milliseconds: the smallest time that 95 % of the steps don't exceed."""
    ordered = sorted(seconds)
    return ordered[max(0, -(-95 * len(ordered) // 100) - 1)] * 1e3
