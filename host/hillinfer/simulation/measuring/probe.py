"""Measurements that are taken in turns."""

from __future__ import annotations

import statistics
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable
from time import perf_counter

from hillinfer.bench.timing import Contender


class Probe(Contender):
    """Takes a few samples of each of its figures at every step.

    samples   by name, in the unit that the name says

    Its blocks are shorter than others': a machine is measured anew at every context that is held against it.
    """

    block = 4

    def __init__(self) -> None:
        self.samples: defaultdict[str, list[float]] = defaultdict(list)

    def median(self, name: str) -> float:
        """The usual one of a figure's samples."""
        return statistics.median(self.samples[name])

    def take(self, name: str, call: Callable[[], object]) -> None:
        """Time a call."""
        start = perf_counter()
        call()
        self.samples[name].append(perf_counter() - start)

    def close(self) -> None:  # most hold nothing
        """Free what the measurement needed."""

    @abstractmethod
    def step(self) -> None:
        """Take samples."""
