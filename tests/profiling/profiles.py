"""Profiles made up for tests: roles as wanted, or measurements at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hillinfer.profiling.identity import ModelIdentity
from hillinfer.profiling.profile import HeadProfile, judge


def random_profile(layers: int = 2, heads: int = 4, group: int = 1, dim: int = 16, seed: int = 0) -> HeadProfile:
    """Measurements at random, judged by 0.5 and 0.5."""
    numbers = np.random.default_rng(seed)
    stability = numbers.random((layers, heads)).astype(np.float32)
    overlap = numbers.random((layers, heads, heads)).astype(np.float32)
    overlap = np.maximum(overlap, overlap.transpose(0, 2, 1))
    overlap[:, range(heads), range(heads)] = 1
    model = ModelIdentity("tiny", "llama", tuple(range(layers)), heads, group, dim, tuple(numbers.random(64)))
    return judge(model, stability, overlap, overlap.max(-1), 0.5, 0.5, {"text": "none"})


def profile_of(
    layers: Sequence[str], stability: Sequence[Sequence[float]], *, group: int = 1, dim: int = 16
) -> HeadProfile:
    """Roles as wanted: per layer a letter per head (a, v, P and its satellites s, which follow the last P before them).

    ``stability`` decides the budgets; the letters a and v must agree with it at 0.5.
    """
    heads = len(layers[0])
    overlap = np.zeros((len(layers), heads, heads), np.float32)
    for layer, letters in enumerate(layers):
        np.fill_diagonal(overlap[layer], 1)
        pivot = -1
        for head, letter in enumerate(letters):
            if letter == "P":
                pivot = head
            elif letter == "s":
                overlap[layer, head, pivot] = overlap[layer, pivot, head] = 0.8
    model = ModelIdentity("tiny", None, tuple(range(len(layers))), heads, group, dim)
    steady = np.array(stability, np.float32)
    profile = judge(model, steady, overlap, overlap.max(-1), 0.5, 0.5, {})
    names = {"anchor": "a", "volatile": "v", "pivot": "P", "satellite": "s"}
    assert ["".join(names[role.value] for role in layer.roles) for layer in profile.layers] == list(layers)
    return profile
