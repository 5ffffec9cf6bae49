"""Scores of several launches over the same tokens, each of which had up to 8 queries per KV head."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hillinfer.errors import DeviceError

Scores = npt.NDArray[np.int16]

_LEAST, _MOST = -32768, 32767


def merge(parts: Sequence[Scores], reduce: str) -> Scores:
    """What one launch with all queries would have scored, int16 [n], from int16 [n] of each.

    A maximum is always exact. A sum of clamped sums is exact where none was clamped, or where what was cut off cannot
    matter; else DeviceError, as the sum is lost. Raw sums as `quantise_query` makes them are never clamped.
    """
    if len(parts) == 1:
        return parts[0]
    stacked = np.stack(parts)
    if reduce == "max":
        most: Scores = stacked.max(0)
        return most
    total = stacked.sum(0, dtype=np.int32)
    above, below = (stacked == _MOST).any(0), (stacked == _LEAST).any(0)
    lost = (above & (total < _MOST)) | (below & (total > _LEAST)) | (above & below)
    if lost.any():
        raise DeviceError(
            f"a sum over {len(parts)} launches left 16 bits: with more than 8 query heads per KV head take the "
            "maximum (reduce='max'), or shift all heads further right"
        )
    clamped: Scores = total.clip(_LEAST, _MOST).astype(np.int16)
    return clamped
