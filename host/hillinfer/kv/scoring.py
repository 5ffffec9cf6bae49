"""The exact integers of kernel.md in NumPy: what the host scores with, and what the software device scores with.

Products of INT8 integers are summed by float32 BLAS: every partial sum is an integer below 2^24, so whatever order BLAS
adds in, the result is exact. Scale and shift are exact in float64: 24 + 16 bits fit its 53.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hillinfer.kv.geometry import BLOCK, TILE
from hillinfer.kv.keys import EXPONENT_MAX, EXPONENT_MIN
from hillinfer.kv.query import QuantisedQuery

_SATURATE24 = 2.0**23


class Scorer:
    """Scores keys block by block, with scratch memory of one block that stays in the core's cache.

    Not thread-safe: one per thread.
    """

    def __init__(self, kv_heads: int, head_dim: int) -> None:
        assert head_dim * 127 * 127 < 2**24, "float32 sums of INT8 products are exact only below 2^24"
        self._keys = np.zeros((BLOCK, kv_heads, head_dim), np.float32)

    def score(
        self, integers: npt.NDArray[np.int8], exponents: npt.NDArray[np.int8], query: QuantisedQuery
    ) -> npt.NDArray[np.int16]:
        """Scores int16 [n] of keys int8 [n, H, d], n ≤ 1024, with exponents int8 [⌈n/64⌉, H]."""
        tokens, tiles = integers.shape[0], exponents.shape[0]
        whole = tiles * TILE  # the last tile is filled up with what the scratch memory holds, and cut off at the end
        keys = self._keys[:whole]
        np.copyto(keys[:tokens], integers, casting="unsafe")
        heads, group = len(query.heads), query.q8.shape[1]
        shift = np.clip(exponents, EXPONENT_MIN, EXPONENT_MAX).T[:, None, :] + query.r[:, :, None]
        scale = np.ldexp(query.m[:, :, None].astype(np.float64), -np.clip(shift, 0, 40))  # [H, G, tiles]
        logits = np.empty((heads, group, tiles, TILE))
        for i, head in enumerate(query.heads):
            sums = keys[:, head] @ query.q8[head].T.astype(np.float32)  # exact integers [whole, G]
            by_tile = sums.reshape(tiles, TILE, group).transpose(2, 0, 1)
            np.multiply(by_tile, scale[head, :, :, None], out=logits[i])
        return _reduce(logits.reshape(heads * group, whole)[:, :tokens], query)


def _reduce(logits: npt.NDArray[np.float64], query: QuantisedQuery) -> npt.NDArray[np.int16]:
    """int16 [n] from the unrounded logits [heads·G, n] in 1/256 nat: round down, saturate, subtract o, reduce."""
    offsets = query.o[list(query.heads)].reshape(-1, 1)
    np.clip(logits, -_SATURATE24, _SATURATE24 - 1, out=logits)
    if query.reduce == "sum":
        reduced = (np.floor(logits) - offsets).sum(0)
    else:
        # o is an integer and floor is monotonic: rounding the maximum down is rounding all of them down.
        logits -= offsets
        reduced = np.floor(logits.max(0))
    scores: npt.NDArray[np.int16] = np.clip(reduced, -32768, 32767).astype(np.int16)
    return scores
