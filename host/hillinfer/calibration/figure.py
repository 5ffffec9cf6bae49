"""A speed that was measured several times over, and how far the times lay apart."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable

from pydantic import BaseModel, ConfigDict, Field

_REPEAT = 0.005
"""Seconds a repeat takes at least: what the scheduler does to one call of 50 µs says nothing."""


class Figure(BaseModel):
    """Bytes per second: ``median``, median absolute deviation ``mad``, range of the middle half ``iqr``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    median: float = Field(gt=0, allow_inf_nan=False)
    mad: float = Field(ge=0, allow_inf_nan=False)
    iqr: float = Field(ge=0, allow_inf_nan=False)
    repeats: int = Field(ge=1)

    @property
    def spread(self) -> float:
        """The middle half's range as a share of the median."""
        return self.iqr / self.median

    @classmethod
    def of(cls, speeds: list[float]) -> Figure:
        """Of bytes per second, one per repeat."""
        median = statistics.median(speeds)
        mad = statistics.median(abs(speed - median) for speed in speeds)
        low, _, high = statistics.quantiles(speeds, n=4, method="inclusive") if len(speeds) > 1 else (median,) * 3
        return cls(median=median, mad=mad, iqr=high - low, repeats=len(speeds))


def repeat(work: Callable[[int], int], seconds: float, *, least: int = 5) -> Figure:
    """Do ``work`` again and again for about so many seconds, once before the clock starts.

    work    called with the number of the call; returns the bytes it worked through
    least   repeats, however long they take. Short work is done several times over in a repeat
    """
    work(0)
    calls = 0

    def once() -> tuple[int, float]:
        nonlocal calls
        calls += 1
        start = time.perf_counter()
        nbytes = work(calls)
        return nbytes, time.perf_counter() - start

    batch = max(1, math.ceil(_REPEAT / max(once()[1], 1e-9)))
    speeds: list[float] = []
    end = time.perf_counter() + seconds
    while len(speeds) < least or time.perf_counter() < end:
        done = [once() for _ in range(batch)]
        speeds.append(sum(nbytes for nbytes, _ in done) / sum(taken for _, taken in done))
    return Figure.of(speeds)
