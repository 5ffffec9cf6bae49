"""The exact integers of kernel.md in NumPy: what the host scores with, and what the software device scores with.

Scale and shift are exact in float64: 24 + 16 bits fit its 53.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hillinfer.kv.geometry import BLOCK, TILE
from hillinfer.kv.keys import EXPONENT_MAX, EXPONENT_MIN
from hillinfer.kv.products import best_way
from hillinfer.kv.query import QuantisedQuery

_SATURATE24 = 2.0**23
_SCRATCH_BYTES = 4 << 20


class Scorer:
    """Scores up to ``most`` keys at a time, whole blocks of them, in scratch memory of a few MiB.

    Not thread-safe: one per thread. Large pieces are worth it: each NumPy call hands the interpreter lock over twice.
    """

    def __init__(self, kv_heads: int, head_dim: int) -> None:
        assert head_dim * 127 * 127 < 2**24, "float32 sums of INT8 products are exact only below 2^24"
        self.most = max(1, _SCRATCH_BYTES // (4 * BLOCK * kv_heads * head_dim)) * BLOCK
        self._multiply = best_way()
        rows = min(self.most, max(TILE, _SCRATCH_BYTES // (4 * kv_heads * head_dim)))
        self._scratch = np.empty((rows, kv_heads, head_dim), np.float32)  # occupied only if BLAS needs it

    def score(
        self, integers: npt.NDArray[np.int8], exponents: npt.NDArray[np.int8], query: QuantisedQuery
    ) -> npt.NDArray[np.int16]:
        """Scores int16 [n] of keys int8 [n, H, d], n ≤ ``most``, with exponents int8 [⌈n/64⌉, H]."""
        tokens, tiles = integers.shape[0], exponents.shape[0]
        heads, group = len(query.heads), query.q8.shape[1]
        shift = np.clip(exponents, EXPONENT_MIN, EXPONENT_MAX).T[:, None, :] + query.r[:, :, None]
        scale = np.ldexp(query.m[:, :, None].astype(np.float64), -np.clip(shift, 0, 40))  # [H, G, tiles]
        scale = scale[list(query.heads)].reshape(heads * group, tiles)
        products = self._multiply(integers, query, self._scratch)
        if tokens % TILE == 0:
            logits = np.multiply(products.reshape(-1, tiles, TILE), scale[:, :, None], dtype=np.float64)
        else:
            logits = np.multiply(products, np.repeat(scale, TILE, axis=1)[:, :tokens], dtype=np.float64)
        return _reduce(logits.reshape(heads * group, tokens), query)


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
