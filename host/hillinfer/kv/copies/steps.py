"""The rule by which numbers with a known spread become INT4 integers, 64 tokens to an exponent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hillinfer.kv.geometry import TILE
from hillinfer.kv.keys import LIMITS, ScoringKeys, exponents_for

STEP = 0.4
"""Standard deviations per integer step: ±7 of them reach to 2.8, near the best for 15 levels of a normal variable."""

_LIMIT = LIMITS["int4"]
_BEYOND = 2 * _LIMIT  # what lies further out than this makes its tile coarser; the rest is cut off at ±7


def quantise(steps: npt.NDArray[np.float64]) -> ScoringKeys:
    """Scoring keys of numbers float64 [n, H, d'] in integer steps, the first of which starts a tile.

    The exponent is 0, and below it only for a tile with numbers far out: one outlier does not cost 63 other tokens
    their resolution, and is not cut to nothing either. All heads of a tile share it, so that narrow heads can share
    a beat of the kernel's (docs/kernel.md).
    """
    tokens, heads, _ = steps.shape
    tiles = -(-tokens // TILE)
    largest = np.abs(steps).max((1, 2), initial=0.0)
    of_tile = np.maximum.reduceat(largest, np.arange(0, tokens, TILE)) if tokens else np.empty(0)
    exponents = _exponents(of_tile)
    scale = np.exp2(np.repeat(exponents, TILE)[:tokens].astype(np.float64))
    integers = np.rint(steps * scale[:, None, None]).clip(-_LIMIT, _LIMIT).astype(np.int8)
    return ScoringKeys(integers, np.repeat(exponents[:, None], heads, 1).reshape(tiles, heads))


def quantise_newest(steps: npt.NDArray[np.float64], exponents: npt.NDArray[np.int8]) -> npt.NDArray[np.int8] | None:
    """Integers int8 [H, d'] of one token's float64 [H, d'], as ``quantise`` would; None where it changes its tile."""
    if _exponents(np.abs(steps).max(keepdims=True).reshape(1))[0] < exponents[0]:
        return None
    scaled = steps * 2.0 ** int(exponents[0])
    integers: npt.NDArray[np.int8] = np.rint(scaled).clip(-_LIMIT, _LIMIT).astype(np.int8)
    return integers


def _exponents(largest: npt.NDArray[np.float64]) -> npt.NDArray[np.int8]:
    return np.minimum(exponents_for(largest.astype(np.float32), _BEYOND), 0).astype(np.int8)
