"""The scoring copy of keys: INT8 (or INT4) integers with one power-of-two exponent per tile and KV head.

The cast is that of kernel.md: round half to even of k·2^e for the FP16 key k, saturated to ±127 (±7). Where the
exponent comes from is the host's choice, and made here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.geometry import TILE

EXPONENT_MIN, EXPONENT_MAX = -16, 15
LIMITS = {"int8": 127, "int4": 7}
_TILES_AT_ONCE = 8


@dataclass(frozen=True)
class ScoringKeys:
    """Keys as they are scored: ``integers`` int8 [n, H, d], ``exponents`` int8 [⌈n/64⌉, H]; k ≈ integer·2^−exponent."""

    integers: npt.NDArray[np.int8]
    exponents: npt.NDArray[np.int8]


def cast_keys(keys: torch.Tensor, key_format: str = "int8") -> ScoringKeys:
    """Cast keys [H, n, d] (any float type) whose first token starts a tile.

    The exponent of a tile and head is the largest with which its largest key still fits the format.
    """
    heads, tokens, dim = keys.shape
    tiles = -(-tokens // TILE)
    integers = np.empty((tokens, heads, dim), np.int8)
    exponents = np.empty((tiles, heads), np.int8)
    for tile in range(0, tiles, _TILES_AT_ONCE):  # a long prompt needs no copies of all its keys
        part = slice(tile * TILE, (tile + _TILES_AT_ONCE) * TILE)
        cast, exponents[tile : tile + _TILES_AT_ONCE] = _cast(keys[:, part].transpose(0, 1), LIMITS[key_format])
        integers[part] = cast.numpy()
    return ScoringKeys(integers, exponents)


def _cast(keys: torch.Tensor, limit: int) -> tuple[torch.Tensor, npt.NDArray[np.int8]]:
    """Integers int8 [n, H, d] and exponents int8 [tiles, H] of keys [n, H, d]."""
    tokens, heads, dim = keys.shape
    tiles = -(-tokens // TILE)
    work = torch.zeros(tiles * TILE, heads, dim)
    work[:tokens] = keys.to(torch.float16)  # what the kernel would read
    work.nan_to_num_(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    tiled = work.view(tiles, TILE, heads, dim)
    largest = torch.maximum(tiled.amax((1, 3)), -tiled.amin((1, 3)))
    exponents = exponents_for(largest.numpy(), limit)
    tiled *= torch.from_numpy(np.exp2(exponents.astype(np.float32)))[:, None, :, None]
    return work.round_().clamp_(-limit, limit)[:tokens].to(torch.int8), exponents


def exponents_for(largest: npt.NDArray[np.float32], limit: int) -> npt.NDArray[np.int8]:
    """int8 exponents e with largest·2^e ≤ limit, clamped to what the kernel accepts; zeros and infinities are safe."""
    ratio = limit / np.maximum(largest, np.float32(1e-30))
    exponent = np.where(ratio > 0, np.frexp(ratio)[1] - 1, EXPONENT_MIN)
    return np.clip(exponent, EXPONENT_MIN, EXPONENT_MAX).astype(np.int8)
