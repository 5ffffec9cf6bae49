"""The engine's integers against the NumPy model that was written from the kernel's contract alone."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hillinfer import _native
from hillinfer.kv.keys import cast_keys
from hillinfer.kv.query import QuantisedQuery, quantise_query
from hillinfer.kv.scoring import pack, score
from tb import qk_model


def _random_query(rng: np.random.Generator, heads: int, group: int, dim: int, reduce: str) -> QuantisedQuery:
    return QuantisedQuery(
        rng.integers(-127, 128, (heads, group, dim)).astype(np.int8),
        rng.integers(0, 65536, (heads, group)).astype(np.int32),
        rng.integers(0, 64, (heads, group)).astype(np.int32),
        rng.integers(-(2**23), 2**23, (heads, group)).astype(np.int32) >> int(rng.integers(0, 24)),
        reduce,
        tuple(range(heads)),
    )


@pytest.fixture(params=_native.variants())
def variant(request, use_variant):
    """Each instruction set that this processor has."""
    use_variant(request.param)


@pytest.mark.usefixtures("variant")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    heads=st.integers(1, 5),
    group=st.integers(1, 9),
    dim=st.sampled_from([6, 8, 64, 80, 128, 256]),
    tokens=st.integers(1, 300),
    reduce=st.sampled_from(["max", "sum"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_scores_are_the_kernels_to_the_bit(heads, group, dim, tokens, reduce, seed):
    rng = np.random.default_rng(seed)
    keys = rng.integers(-128, 128, (tokens, heads, dim)).astype(np.int8)
    exponents = rng.integers(-18, 18, (-(-tokens // 64), heads)).astype(np.int8)
    query = _random_query(rng, heads, group, dim, reduce)
    enabled = np.zeros((heads, group), bool)
    chosen = rng.choice(heads, int(rng.integers(1, heads + 1)), replace=False)
    enabled[chosen] = True
    query = QuantisedQuery(query.q8, query.m, query.r, query.o, reduce, tuple(sorted(int(head) for head in chosen)))
    scores = score(pack(keys), exponents, query)[:tokens]
    expected = qk_model.scores(query.q8, keys, exponents, query.m, query.r, query.o, enabled, reduce)
    np.testing.assert_array_equal(scores, expected)


@settings(max_examples=40, deadline=None)
@given(
    heads=st.integers(1, 4),
    tokens=st.integers(1, 200),
    magnitude=st.integers(-30, 20),
    key_format=st.sampled_from(["int8", "int4"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_keys_are_cast_as_the_kernel_casts_them(heads, tokens, magnitude, key_format, seed):
    limit = {"int8": 127, "int4": 7}[key_format]
    generator = torch.Generator().manual_seed(seed % 2**31)
    keys = torch.randn(heads, tokens, 16, generator=generator) * 2.0**magnitude
    cast = cast_keys(keys, key_format)
    bits = keys.to(torch.float16).transpose(0, 1).contiguous().numpy().view(np.uint16)
    exponents = qk_model.token_exponents(cast.exponents, tokens)[:, :, None]
    np.testing.assert_array_equal(cast.integers, qk_model.cast_fp16(bits, exponents, limit))


def test_a_tile_uses_the_whole_range_of_its_format():
    keys = torch.randn(2, 640, 64)
    largest = np.abs(cast_keys(keys).integers.astype(int)).reshape(10, 64, 2, 64).max((1, 3))
    assert (largest > 63).all()  # one exponent more would not fit
    assert (largest <= 127).all()


def test_keys_that_are_not_numbers_are_cast_as_the_contract_says():
    keys = torch.zeros(1, 3, 8)
    keys[0, 0, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])
    assert cast_keys(keys).integers[0, 0, :3].tolist() == [0, 127, -127]


@settings(max_examples=40, deadline=None)
@given(magnitude=st.integers(-12, 4), seed=st.integers(0, 2**31 - 1))
def test_a_quantised_logit_is_close_to_the_true_one(magnitude, seed):
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn(2, 64, 64, generator=generator)
    query = torch.randn(2, 3, 64, generator=generator) * 2.0**magnitude
    cast = cast_keys(keys)
    quantised = quantise_query(query.numpy(), 0.125, np.zeros((2, 3), np.float32), cast.exponents.min(0), "max")
    logits = qk_model.logits(quantised.q8, cast.integers, cast.exponents, quantised.m, quantised.r) / 256
    true = torch.einsum("hgd,hnd->nhg", query, keys).numpy() * 0.125
    scale = np.abs(query.numpy()).max() * 0.125 * 8  # √d keys of one unit: what an INT8 rounding step can add up to
    assert np.abs(logits - true).max() < scale * 0.05 + 1 / 256


@pytest.mark.parametrize("heads", [1, 8, 32])
def test_a_raw_sum_never_saturates(heads):
    rng = np.random.default_rng(heads)
    for scale in (1e-3, 1.0, 1e3, 1e6):
        query = (rng.normal(size=(heads, 4, 64)) * scale).astype(np.float32)
        keys = cast_keys(torch.from_numpy(rng.normal(size=(heads, 64, 64)).astype(np.float32)))
        quantised = quantise_query(query, 0.125, None, keys.exponents.min(0), "sum")
        worst = np.sign(quantised.q8.astype(int)).mean(1).round().astype(int) * 127
        integers = np.broadcast_to(worst.astype(np.int8), (64, heads, 64))
        wide = qk_model.logits(quantised.q8, integers, keys.exponents, quantised.m, quantised.r).sum((1, 2))
        assert np.abs(wide).max() <= 32767


def test_a_query_of_zeros_scores_zero_everywhere():
    keys = cast_keys(torch.randn(2, 64, 16))
    zeros = np.zeros((2, 2, 16), np.float32)
    query = quantise_query(zeros, 0.25, zeros[..., 0], keys.exponents[0], "max")
    assert not score(pack(keys.integers), keys.exponents, query).any()


@given(st.integers(1, 4), st.integers(1, 80), st.integers(-3, 7), st.integers(0, 2**31 - 1))
def test_a_key_cast_by_itself_is_that_of_its_tile(heads, dim, magnitude, seed):
    generator = torch.Generator().manual_seed(seed)
    scales = 2.0 ** (magnitude + torch.randn(1, 64, 1, generator=generator))
    keys = torch.randn(heads, 64, dim, generator=generator) * scales
    tile = cast_keys(keys)
    alone, whole = np.zeros_like(pack(tile.integers)), pack(tile.integers)
    for place in range(64):
        assert _native.pack_with(keys[:, place].contiguous().numpy(), tile.exponents[0], 127, alone, place)
    np.testing.assert_array_equal(alone, whole)
    larger = (keys.abs().amax((1, 2)) * 4)[:, None].expand(heads, dim).contiguous()
    assert not _native.pack_with(larger.numpy(), tile.exponents[0], 127, alone, 0)
