"""The exact integers of kernel.md, by the native scorer: the host's share, and the software device's.

Keys are scanned in a layout of their own, a row of bytes per tile (host/native/keys.h), so that 16 tokens are
multiplied side by side. Which instructions do it is chosen while running; all of them give the same integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.kv.geometry import TILE
from hillinfer.kv.query import QuantisedQuery

Tiles = npt.NDArray[np.uint8]
"""uint8 [tiles, tile_bytes]: keys of whole tiles in the scanning layout."""


def tile_bytes(kv_heads: int, head_dim: int, key_format: str = "int8") -> int:
    """Bytes of a tile in the scanning layout of "int8", "int4" or "fp16" keys."""
    return _native.tile_bytes(kv_heads, head_dim, key_format)


def pack(keys: npt.NDArray[np.int8] | npt.NDArray[np.float16], key_format: str = "int8") -> Tiles:
    """Tiles of keys [n, H, d]; the last one is filled up with keys of no meaning.

    keys    int8 for "int8" and "int4" (those within -8 to 7, packed two to a byte), float16 for "fp16"
    """
    tokens, heads, dim = keys.shape
    tiles = np.zeros((-(-tokens // TILE), tile_bytes(heads, dim, key_format)), np.uint8)
    bits: npt.NDArray[Any] = keys.view(np.uint16) if key_format == "fp16" else keys
    _native.pack_keys(np.ascontiguousarray(bits), tiles, 0, key_format)
    return tiles


def score(
    tiles: Tiles, exponents: npt.NDArray[np.int8], query: QuantisedQuery, key_format: str = "int8"
) -> npt.NDArray[np.int16]:
    """Scores int16 [64·tiles] of tiles of that format, with exponents int8 [tiles, H].

    FP16 keys are cast to INT8 with their tile's exponent on the way, as the kernel does.
    """
    scores = np.empty(len(tiles) * TILE, np.int16)
    query.native_for(key_format).score(tiles, exponents, scores)
    return scores
