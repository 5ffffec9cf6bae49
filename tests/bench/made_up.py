"""Captures of no model, for tests of what is done with them."""

from __future__ import annotations

import numpy as np

from hillinfer.bench.captures import Capture, Captured


def made_up(
    *, layers: int = 2, kv_heads: int = 2, group: int = 2, head_dim: int = 16, tokens: int = 400, seed: int = 0
) -> Capture:
    """Random numbers in a capture's shape; keys differ enough for attention to be peaked."""
    random = np.random.default_rng(seed)

    def half(*shape: int) -> np.ndarray:
        return random.normal(size=shape).astype(np.float16)

    made = tuple(
        Captured(
            layer,
            2 * half(kv_heads, group, tokens, head_dim),
            2 * half(kv_heads, tokens, head_dim),
            half(kv_heads, tokens, head_dim),
        )
        for layer in range(layers)
    )
    return Capture("made-up", tokens, "0", made)
