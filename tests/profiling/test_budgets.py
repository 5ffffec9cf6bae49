"""Inverse-stability budgets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.errors import SettingError
from hillinfer.profiling.budgets import base_length, compressed, inverse_stability, lengths
from hillinfer.profiling.roles import layer_roles


@st.composite
def _profiles(draw):
    layers, heads = draw(st.integers(1, 5)), draw(st.integers(2, 8))
    numbers = np.random.default_rng(draw(st.integers(0, 1000)))
    stability = numbers.random((layers, heads)).astype(np.float32)
    overlap = numbers.random((layers, heads, heads)).astype(np.float32)
    return stability, tuple(
        layer_roles(s, np.maximum(o, o.T), 0.5, 0.8) for s, o in zip(stability, overlap, strict=True)
    )


@settings(deadline=None)
@given(_profiles())
def test_the_mean_share_is_one_and_unsteady_heads_get_more(profile):
    stability, layers = profile
    shares, part = inverse_stability(layers, stability), compressed(layers)
    assert not shares[~part].any()
    if part.any():
        assert shares[part].mean() == pytest.approx(1)
        order = np.argsort(stability[part], kind="stable")
        assert (np.diff(shares[part][order]) <= 1e-9).all()


@settings(deadline=None)
@given(_profiles(), st.floats(0.05, 1), st.integers(100, 5000))
def test_lengths_are_the_papers_and_never_more_than_the_budget(profile, ratio, tokens):
    stability, layers = profile
    shares, part = inverse_stability(layers, stability), compressed(layers)
    heads, whole = part.size, int((~part).sum())
    if ratio * heads <= whole and not (whole == heads and ratio == 1):
        with pytest.raises(SettingError, match=f"undefined, F = {whole}"):
            base_length(ratio, tokens, heads, whole)
        return
    base = base_length(ratio, tokens, heads, whole)
    kept = lengths(base, shares, layers, tokens)
    assert (kept[~part] == tokens).all()
    if part.any():
        assert base == min(int((ratio * heads - whole) * tokens / (heads - whole)), tokens)
        expected = [min(int(base * share), tokens) for share in shares[part]]
        assert kept[part].tolist() == expected
    assert kept.sum() <= ratio * heads * tokens * (1 + 1e-9)
