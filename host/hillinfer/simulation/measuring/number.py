"""A number that was measured here."""

from __future__ import annotations

from hillinfer.simulation.hardware import Number


def measured(value: float, how: str) -> Number:
    """A difference of two times may come out below nothing on a busy machine: then it is nothing."""
    return Number(max(0.0, value), f"measured here: {how}")
