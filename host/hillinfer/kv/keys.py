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


@dataclass(frozen=True)
class ScoringKeys:
    """Keys as they are scored: ``integers`` int8 [n, H, d], ``exponents`` int8 [⌈n/64⌉, H]; k ≈ integer·2^−exponent."""

    integers: npt.NDArray[np.int8]
    exponents: npt.NDArray[np.int8]


def cast_keys(keys: torch.Tensor, key_format: str = "int8") -> ScoringKeys:
    """Cast keys [H, n, d] (any float type) whose first token starts a tile.

    The exponent of a tile and head is the largest with which its largest key still fits the format.
    """
    limit = LIMITS[key_format]
    heads, tokens, dim = keys.shape
    half = keys.to(torch.float16).to(torch.float32).transpose(0, 1)  # [n, H, d]; what the kernel would read
    tiles = -(-tokens // TILE)
    padded = torch.zeros(tiles * TILE, heads, dim)
    padded[:tokens] = half
    padded.nan_to_num_(nan=0.0, posinf=torch.inf, neginf=-torch.inf)
    largest = padded.view(tiles, TILE, heads, dim).abs().amax((1, 3))
    exponents = exponents_for(largest.numpy(), limit)
    scale = torch.from_numpy(np.exp2(exponents.astype(np.float32)))
    scaled = padded.view(tiles, TILE, heads, dim) * scale[:, None, :, None]
    integers = scaled.round_().clamp_(-limit, limit).to(torch.int8).view(tiles * TILE, heads, dim)[:tokens]
    return ScoringKeys(integers.numpy(), exponents)


def exponents_for(largest: npt.NDArray[np.float32], limit: int) -> npt.NDArray[np.int8]:
    """int8 exponents e with largest·2^e ≤ limit, clamped to what the kernel accepts; zeros and infinities are safe."""
    with np.errstate(divide="ignore"):
        ratio = limit / np.maximum(largest, np.float32(1e-30))
    exponent = np.where(ratio > 0, np.frexp(ratio)[1] - 1, EXPONENT_MIN)
    return np.clip(exponent, EXPONENT_MIN, EXPONENT_MAX).astype(np.int8)
