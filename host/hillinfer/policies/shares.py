"""Budgets shared out among layers: whole rows, none too many in all, and no layer more than there is."""

from __future__ import annotations

import math
from collections.abc import Sequence

_ROUNDING = 1e-6


def whole(parts: Sequence[float]) -> list[int]:
    """Whole numbers beside ``parts`` ≥ 0, each less than 1 off, with the same sum rounded down."""
    rows, total, given = [], 0.0, 0
    for part in parts:
        total += part
        rows.append(math.floor(total + _ROUNDING) - given)
        given += rows[-1]
    return rows


def spread(preferences: Sequence[float], total: float, most: int) -> list[float]:
    """``total`` in proportion to ``preferences`` ≥ 0, at most ``most`` each; what one can't use goes to the others."""
    wanted = list(preferences) if sum(preferences) > 0 else [1.0] * len(preferences)
    parts = [0.0] * len(wanted)
    open_ = list(range(len(wanted)))
    total = min(total, float(most * len(wanted)))
    while open_:
        weight = sum(wanted[i] for i in open_)
        share = [total * wanted[i] / weight if weight > 0 else total / len(open_) for i in open_]
        full = [i for i, part in zip(open_, share, strict=True) if part >= most]
        if not full:
            for i, part in zip(open_, share, strict=True):
                parts[i] = part
            break
        for i in full:
            parts[i] = float(most)
        total -= most * len(full)
        open_ = [i for i in open_ if i not in full]
    return parts
