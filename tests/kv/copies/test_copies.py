"""Scoring copies against a plain oracle, and what each promises whatever the keys are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.kv.copies import KINDS, KeyMoments
from hillinfer.kv.copies.projected import Projected
from hillinfer.kv.keys import cast_keys

FITTED = [kind for kind in KINDS.values() if kind.fitted]
SHAPES = {
    "heads": st.integers(1, 3),
    "dim": st.sampled_from([2, 16, 24, 64]),
    "tokens": st.integers(1, 300),
    "seed": st.integers(0, 1000),
}


class Whole(Projected):
    """Every axis kept: nothing may be lost but to rounding."""

    name = "projected/1"
    part = 1


def _stream(heads, dim, tokens, seed, spread=3.0):
    """Keys [H, n, d] with channels of very different size around large means, and queries [H, 40, d]."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.exp(torch.randn(heads, 1, dim, generator=generator) * spread / 3)
    keys = torch.randn(heads, tokens, dim, generator=generator) * sizes
    keys += torch.randn(heads, 1, dim, generator=generator) * 5
    return keys, torch.randn(heads, 40, dim, generator=generator)


def _fit(kind, keys, queries):
    moments = KeyMoments(keys.shape[0], keys.shape[2])
    for piece in keys.split(64, 1):
        moments.add(piece)
    return kind.fit(moments, queries.double().numpy())


def _logits(copy, keys, queries):
    """What integers, exponents, query and shift say of q·k, float64 [H, n, queries]."""
    cast, (asked, shift) = copy.cast(keys), copy.query(queries.numpy())
    exponents = np.repeat(cast.exponents, 64, 0)[: keys.shape[1]].astype(np.float64)
    values = cast.integers / np.exp2(exponents)[:, :, None]
    return np.einsum("nhd,hqd->hnq", values, asked) + (0 if shift is None else shift[:, None])


@settings(max_examples=20, deadline=None)
@given(**SHAPES)
def test_the_whole_projection_leaves_every_logit_as_it_was(heads, dim, tokens, seed):
    keys, queries = _stream(heads, dim, tokens, seed)
    copy = _fit(Whole(), keys, queries)
    asked, shift = copy.query(queries.numpy())
    found = np.einsum("hnd,hqd->hnq", copy._project(keys.double().numpy()), asked) + shift[:, None]
    exact = (keys.double() @ queries.double().transpose(1, 2)).numpy()
    assert np.abs(found - exact).max() <= 1e-3 * max(1.0, np.abs(exact).max())


@settings(max_examples=20, deadline=None)
@given(**SHAPES)
def test_what_is_centred_comes_back_in_the_shift(heads, dim, tokens, seed):
    """A key that is the mean of all is scored exactly, with integers of zero."""
    keys, queries = _stream(heads, dim, tokens, seed)
    copy = _fit(KINDS["int4"], keys, queries)
    mean = keys.double().mean(1, keepdim=True)
    assert not copy.cast(mean.float()).integers.any() or tokens == 1
    _, shift = copy.query(queries.numpy())
    np.testing.assert_allclose(shift, (mean @ queries.double().transpose(1, 2)).numpy()[:, 0], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", FITTED, ids=lambda kind: kind.name)
def test_integers_are_the_oracles(kind):
    """In plain NumPy, from the definition."""
    keys, queries = _stream(2, 16, 500, 1)
    k, q = keys.double().numpy(), queries.double().numpy()
    integers = np.empty((500, 2, kind.key_dim(16)))
    for head in range(2):
        mean, covariance = k[head].mean(0), np.cov(k[head].T, bias=True)
        if kind.name == "int4":
            axes = np.diag(1 / np.sqrt(np.diag(covariance)))
        else:
            moment = q[head].T @ q[head] / len(q[head])
            plane = (np.diag(moment)[:8] + np.diag(moment)[8:]) / 2
            moment += np.diag(0.1 * np.tile(plane, 2) + 1e-3 * plane.mean())
            lower = np.linalg.cholesky(moment)
            spread, turned = np.linalg.eigh(lower.T @ covariance @ lower)
            axes = lower @ turned / np.sqrt(spread)
            axes = axes[:, ::-1][:, : kind.key_dim(16)]
        integers[:, head] = (k[head] - mean) @ axes / 0.4
    exponents = []
    for first in range(0, 500, 64):
        tile = integers[first : first + 64]
        exponents.append(min(0, int(np.floor(np.log2(14 / np.abs(tile).max())))))
        tile *= 2.0 ** exponents[-1]
    cast = _fit(kind, keys, queries).cast(keys)
    assert cast.exponents.tolist() == [[e, e] for e in exponents]
    signs = np.sign((cast.integers * integers).sum(0))  # an axis may point either way
    assert (np.abs(cast.integers * signs - integers.clip(-7, 7)) <= 0.5 + 1e-4).all()


@settings(max_examples=15, deadline=None)
@given(kind=st.sampled_from(list(KINDS.values())), cut=st.integers(1, 4), **SHAPES)
def test_integers_do_not_depend_on_how_many_are_cast_at_once(kind, cut, heads, dim, tokens, seed):
    """By tiles, by several, all at once; and token by token, as generated ones come."""
    keys, queries = _stream(heads, dim, tokens, seed)
    copy = _fit(kind, keys[:, : 1 + tokens // 2], queries)
    whole = copy.cast(keys)
    parts = [copy.cast(part) for part in keys.split(64 * cut, 1)]
    np.testing.assert_array_equal(whole.integers, np.concatenate([part.integers for part in parts]))
    np.testing.assert_array_equal(whole.exponents, np.concatenate([part.exponents for part in parts]))
    last = (tokens - 1) // 64 * 64
    tile = copy.cast(keys[:, last : last + 1])
    for n in range(last + 1, tokens):
        newest = copy.cast_newest(keys[:, n], tile.exponents[0])
        again = copy.cast(keys[:, last : n + 1])
        if newest is not None:
            np.testing.assert_array_equal(newest, again.integers[-1])
            np.testing.assert_array_equal(tile.exponents, again.exponents)
        tile = again
    np.testing.assert_array_equal(tile.integers, whole.integers[last:])


@pytest.mark.parametrize("kind", FITTED, ids=lambda kind: kind.name)
def test_integers_fit_four_bits_and_heads_share_exponents(kind):
    keys, queries = _stream(3, 16, 300, 2)
    copy = _fit(kind, keys, queries)
    keys[:, 70] *= 1000
    keys[0, 140, 3], keys[1, 141, 0] = torch.nan, torch.inf
    cast = copy.cast(keys)
    assert np.abs(cast.integers).max() <= 7
    assert (cast.exponents == cast.exponents[:, :1]).all()
    assert cast.exponents[1, 0] < 0  # the tile of the outlier
    assert cast.exponents[0, 0] == 0


def test_finer_copies_are_nearer_to_the_exact_logits():
    """On keys that lie near a few directions, as real ones do."""
    generator = torch.Generator().manual_seed(3)
    falling = torch.exp(-torch.arange(32) / 4)
    keys = (torch.randn(2, 600, 32, generator=generator) * falling) @ torch.randn(2, 32, 32, generator=generator)
    queries = torch.randn(2, 40, 32, generator=generator)
    exact = (keys.double() @ queries.double().transpose(1, 2)).numpy()
    errors = []
    for name in ("int8", "int4", "projected/2", "projected/4", "projected/8"):
        errors.append(np.abs(_logits(_fit(KINDS[name], keys, queries), keys, queries) - exact).mean())
    assert errors[0] < errors[1] / 4
    assert errors[2] < errors[3] < errors[4] < np.abs(exact).mean() / 2


def test_constant_keys_are_served():
    keys = torch.full((2, 100, 8), 3.0)
    for kind in KINDS.values():
        copy = _fit(kind, keys, torch.zeros(2, 5, 8))
        logits = _logits(copy, keys, torch.ones(2, 4, 8))
        np.testing.assert_allclose(logits, 24.0, rtol=1e-2)


@settings(max_examples=20, deadline=None)
@given(heads=st.integers(1, 3), tokens=st.integers(1, 200), seed=st.integers(0, 99))
def test_int8_is_the_kernels_cast(heads, tokens, seed):
    keys, queries = _stream(heads, 16, tokens, seed)
    copy = _fit(KINDS["int8"], keys, queries)
    np.testing.assert_array_equal(copy.cast(keys).integers, cast_keys(keys).integers)
    asked, shift = copy.query(queries.numpy())
    assert shift is None
    np.testing.assert_array_equal(asked, queries.numpy())
