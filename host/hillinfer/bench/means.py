"""Means of what is not always known."""

from __future__ import annotations

import statistics
from collections.abc import Iterable


def mean_known(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None
