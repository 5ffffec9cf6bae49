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


Done = tuple[int, float]
"""Bytes that were worked through, and seconds that took."""


def timed(work: Callable[[int], int]) -> Callable[[int], list[Done]]:
    """``work``, which returns the bytes it worked through, with the time it took."""

    def done(i: int) -> list[Done]:
        start = time.perf_counter()
        nbytes = work(i)
        return [(nbytes, time.perf_counter() - start)]

    return done


def repeat(work: Callable[[int], list[Done]], seconds: float, *, least: int = 5) -> list[Figure]:
    """Do ``work`` again and again for about so many seconds, once before the clock starts.

    work    called with the number of the call; what it did, one of each figure that comes of it
    least   repeats, however long they take. Short work is done several times over in a repeat
    """
    work(0)
    calls = 1
    start = time.perf_counter()
    work(calls)
    batch = max(1, math.ceil(_REPEAT / max(time.perf_counter() - start, 1e-9)))
    speeds: list[list[float]] = []
    end = time.perf_counter() + seconds
    while len(speeds) < least or time.perf_counter() < end:
        done = [work(calls + 1 + i) for i in range(batch)]
        calls += batch
        speeds.append([sum(n for n, _ in each) / sum(taken for _, taken in each) for each in zip(*done, strict=True)])
    return [Figure.of(list(each)) for each in zip(*speeds, strict=True)]
