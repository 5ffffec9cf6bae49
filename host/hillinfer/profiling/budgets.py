"""Tokens per compressed head: the unsteady ones get more, the mean is what the memory ratio leaves for them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hillinfer.errors import SettingError
from hillinfer.profiling.roles import LayerRoles

Shares = npt.NDArray[np.float64]
EPSILON = 1e-6


def inverse_stability(layers: Sequence[LayerRoles], stability: npt.NDArray[np.float32]) -> Shares:
    """r_h float64 [L, H]: N_c·w_h / Σw with w_h = 1/(S_stable + ε) over the N_c compressed heads; 0 for the others.

    Their mean over the compressed heads is 1.
    """
    weights = np.where(compressed(layers), 1 / (stability.astype(np.float64) + EPSILON), 0)
    total = weights.sum()
    return weights * (np.count_nonzero(weights) / total) if total else weights


def compressed(layers: Sequence[LayerRoles]) -> npt.NDArray[np.bool_]:
    """bool [L, H]: anchors and satellites, which keep a part of the tokens on the device."""
    return np.array([[not role.whole for role in layer.roles] for layer in layers])


def base_length(ratio: float, tokens: int, heads: int, whole: int) -> int:
    """L_base = ⌊(ρ·N_h − F)·N / (N_h − F)⌋: what a compressed head keeps on average, of ``tokens`` tokens.

    ratio   ρ, the share of the KV that stays on the device
    heads   N_h, KV heads of all layers; whole: F of them keep everything

    SettingError where ρ·N_h ≤ F: the heads that keep everything take the whole budget. Without compressed heads there
    is nothing to share out: N.
    """
    if whole == heads and ratio >= 1:
        return tokens
    if ratio * heads <= whole:
        fix = f"give more than {whole / heads:.1%}" if whole < heads else "choose another policy"
        raise SettingError(
            f"undefined, F = {whole}: {whole} of the {heads} KV heads keep every token (volatile and pivot heads), so "
            f"that a budget of {ratio:.1%} leaves nothing for the others: {fix}"
        )
    return min(math.floor((ratio * heads - whole) * tokens / (heads - whole)), tokens)


def lengths(base: int, shares: Shares, layers: Sequence[LayerRoles], tokens: int) -> npt.NDArray[np.int64]:
    """l_h int64 [L, H]: min(⌊L_base·r_h⌋, N) of compressed heads, N of the others."""
    part = np.minimum(np.floor(base * shares), tokens).astype(np.int64)
    return np.where(compressed(layers), part, tokens)
