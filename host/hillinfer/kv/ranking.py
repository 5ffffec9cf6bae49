"""Top-k of float scores, row by row and without sorting: of equal scores the newest, as everywhere."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]


def best(scores: npt.NDArray[np.float32], count: int) -> Places:
    """Places int64 [rows, min(count, n)] of the highest scores float32 [rows, n], ascending; ties go to the last.

    A score that is not a number ranks below all others.
    """
    rows, n = scores.shape
    if count >= n:
        return np.tile(np.arange(n), (rows, 1))
    if count <= 0:
        return np.empty((rows, 0), np.int64)
    scores = np.nan_to_num(scores, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    threshold = np.partition(scores, n - count, axis=-1)[:, n - count, None]
    chosen = scores > threshold
    equal = scores == threshold
    missing = count - chosen.sum(-1, keepdims=True)
    if (equal.sum(-1, keepdims=True) > missing).any():
        equal &= np.cumsum(equal[:, ::-1], -1)[:, ::-1] <= missing
    places: Places = np.nonzero(chosen | equal)[1].reshape(rows, count)
    return places


def spread(chunks: Places, size: int, tokens: int) -> list[Places]:
    """The tokens, ascending, of ascending chunks int64 [rows, k] of ``size`` tokens, of ``tokens`` in all."""
    if not chunks.size:
        return [np.empty(0, np.int64) for _ in chunks]
    positions = (chunks[:, :, None] * size + np.arange(size)).reshape(len(chunks), -1)
    beyond = np.maximum(chunks[:, -1] * size + size - tokens, 0)  # only the last chunk may be begun only
    return [row[: len(row) - surplus] for row, surplus in zip(positions, beyond, strict=True)]
