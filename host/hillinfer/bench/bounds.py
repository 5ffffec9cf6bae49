"""What stops a figure on the machine it was measured on, from the same run, and how far the code is from that."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bound:
    """Of one figure.

    bound      what stops it, in words
    value      what the figure would be at the bound
    distance   the time it took, over the time at the bound: 1 is at it
    """

    bound: str
    value: float
    distance: float
