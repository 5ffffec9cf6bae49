"""The exact integers of kernel.md, by the native scorer: the host's share, and the software device's.

Keys are scanned in a layout of their own, a row of bytes per tile (host/native/keys.h), so that 16 tokens are
multiplied side by side. Which instructions do it is chosen while running; all of them give the same integers.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.kv.geometry import TILE
from hillinfer.kv.query import QuantisedQuery

Tiles = npt.NDArray[np.uint8]
"""uint8 [tiles, tile_bytes]: keys of whole tiles in the scanning layout."""


def tile_bytes(kv_heads: int, head_dim: int) -> int:
    """Bytes of a tile in the scanning layout."""
    return TILE * kv_heads * _native.padded_dim(head_dim)


def pack(integers: npt.NDArray[np.int8]) -> Tiles:
    """Tiles of keys int8 [n, H, d]; the last one is filled up with keys of no meaning."""
    tokens, heads, dim = integers.shape
    tiles = np.zeros((-(-tokens // TILE), tile_bytes(heads, dim)), np.uint8)
    _native.pack_keys(np.ascontiguousarray(integers), tiles, 0)
    return tiles


def score(tiles: Tiles, exponents: npt.NDArray[np.int8], query: QuantisedQuery) -> npt.NDArray[np.int16]:
    """Scores int16 [64·tiles] of tiles with exponents int8 [tiles, H]."""
    scores = np.empty(len(tiles) * TILE, np.int16)
    query.native.score(tiles, exponents, scores)
    return scores
