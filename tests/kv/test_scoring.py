"""The engine's integers against the NumPy model that was written from the kernel's contract alone."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
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


def _random_keys(rng, shape, exponents, key_format):
    """Keys as they are stored, and as the kernel multiplies them; FP16 ones are any bits: subnormal, infinite, NaN."""
    if key_format != "fp16":
        limit = {"int8": 128, "int4": 8}[key_format]
        keys = rng.integers(-limit, limit, shape).astype(np.int8)
        return keys, keys
    wild = rng.integers(0, 2**16, shape).astype(np.uint16)
    usual = rng.normal(size=shape).astype(np.float16).view(np.uint16)
    bits = np.where(rng.random(shape) < 0.3, wild, usual)
    of_token = qk_model.token_exponents(exponents, len(bits))[:, :, None]
    return bits.view(np.float16), qk_model.cast_fp16(bits, of_token, 127)


@pytest.fixture(params=_native.variants())
def variant(request, use_variant):
    """Each instruction set that this processor has."""
    use_variant(request.param)


@pytest.mark.usefixtures("variant")
@settings(max_examples=60, deadline=None)
@given(
    heads=st.integers(1, 5),
    group=st.integers(1, 9),
    dim=st.sampled_from([6, 8, 64, 80, 128, 256]),
    tokens=st.integers(1, 300),
    reduce=st.sampled_from(["max", "sum"]),
    key_format=st.sampled_from(["int8", "int4", "fp16"]),
    seed=st.integers(0, 2**32 - 1),
)
def test_scores_are_the_kernels_to_the_bit(heads, group, dim, tokens, reduce, key_format, seed):
    rng = np.random.default_rng(seed)
    exponents = rng.integers(-18, 18, (-(-tokens // 64), heads)).astype(np.int8)
    stored, keys = _random_keys(rng, (tokens, heads, dim), exponents, key_format)
    query = _random_query(rng, heads, group, dim, reduce)
    enabled = np.zeros((heads, group), bool)
    chosen = rng.choice(heads, int(rng.integers(1, heads + 1)), replace=False)
    enabled[chosen] = True
    query = QuantisedQuery(query.q8, query.m, query.r, query.o, reduce, tuple(sorted(int(head) for head in chosen)))
    scores = score(pack(stored, key_format), exponents, query, key_format)[:tokens]
    expected = qk_model.scores(query.q8, keys, exponents, query.m, query.r, query.o, enabled, reduce)
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.usefixtures("variant")
@pytest.mark.parametrize(("dim", "key_format"), [(64, "int8"), (128, "int4"), (1024, "fp16"), (2048, "int8")])
@pytest.mark.parametrize("reduce", ["max", "sum"])
def test_the_largest_numbers_are_the_kernels_too(dim, key_format, reduce):
    """Dot products to 2^25, logits on both sides of 2^23, normalisers at both ends: where float32 ends to be exact."""
    rng = np.random.default_rng(dim)
    limit = {"int8": 127, "int4": 7, "fp16": 127}[key_format]
    exponents = np.arange(-16, 16, 5, dtype=np.int8)[:, None]
    signs = rng.choice([-1, 1], (len(exponents) * 64, 1, 1))
    keys = (signs * limit - rng.integers(0, 2, (len(exponents) * 64, 1, dim)) * (signs > 0)).astype(np.int8)
    stored = keys
    if key_format == "fp16":
        halves = keys / np.exp2(qk_model.token_exponents(exponents, len(keys)).astype(float))[:, :, None]
        stored = np.clip(halves, -65504, 65504).astype(np.float16).view(np.uint16)
        keys = qk_model.cast_fp16(stored, qk_model.token_exponents(exponents, len(keys))[:, :, None], 127)
    m = np.array([[1, 3, 32769, 65535, 65535, 50001, 0]], np.int32)
    o = np.array([[-(2**23), 2**23 - 1, 2**22, -1, 0, 2**23 - 2**15, 2**15]], np.int32)
    q8 = np.full((1, 7, dim), 127, np.int8)
    for r in range(0, 40, 3):
        query = QuantisedQuery(q8, m, np.full_like(m, r), o, reduce, (0,))
        expected = qk_model.scores(q8, keys, exponents, m, query.r, o, np.ones((1, 7), bool), reduce)
        np.testing.assert_array_equal(score(pack(stored, key_format), exponents, query, key_format), expected)


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


@pytest.mark.usefixtures("variant")
def test_every_fp16_number_is_cast_as_the_kernel_casts_it():
    bits = np.arange(2**16, dtype=np.uint16).reshape(-1, 1, 64)
    one = np.eye(64, dtype=np.int8)[None]  # a query for each dimension: its score is that dimension's integer
    whole = np.full((1, 64), 2**15, np.int32), np.full((1, 64), 15, np.int32)
    for exponent in (-16, -3, 0, 7, 15):
        exponents = np.full((len(bits) // 64, 1), exponent, np.int8)
        r = np.clip(whole[1] - exponent, 0, 40)
        expected = qk_model.scores(one, qk_model.cast_fp16(bits, exponent, 127), exponents, whole[0], r, 0 * r, r == r)
        query = QuantisedQuery(one, whole[0], r, 0 * r, "max", (0,))
        np.testing.assert_array_equal(score(pack(bits.view(np.float16), "fp16"), exponents, query, "fp16"), expected)


@given(
    st.integers(1, 4),
    st.integers(1, 80),
    st.integers(-3, 7),
    st.sampled_from(["int8", "int4", "fp16"]),
    st.integers(0, 2**31 - 1),
)
def test_a_key_cast_by_itself_is_that_of_its_tile(heads, dim, magnitude, key_format, seed):
    generator = torch.Generator().manual_seed(seed)
    scales = 2.0 ** (magnitude + torch.randn(1, 64, 1, generator=generator))
    keys = torch.randn(heads, 64, dim, generator=generator) * scales
    tile = cast_keys(keys, "int4" if key_format == "int4" else "int8")
    limit = 7 if key_format == "int4" else 127
    stored = keys.transpose(0, 1).half().numpy() if key_format == "fp16" else tile.integers
    whole = pack(stored, key_format)
    alone = pack(np.zeros_like(stored), key_format)
    for place in range(64):
        key = keys[:, place].contiguous().numpy()
        assert _native.pack_with(key, tile.exponents[0], limit, alone, place, key_format)
    np.testing.assert_array_equal(alone, whole)
    larger = (keys.abs().amax((1, 2)) * 4)[:, None].expand(heads, dim).contiguous()
    assert not _native.pack_with(larger.numpy(), tile.exponents[0], limit, alone, 0, key_format)


def test_tiles_of_another_format_are_refused():
    keys = np.zeros((64, 2, 12), np.int8)
    query = _random_query(np.random.default_rng(0), 2, 1, 12, "max")
    assert [_native.tile_bytes(2, 12, each) for each in ("int8", "int4", "fp16")] == [1536, 1024, 3072]
    with pytest.raises(ValueError, match="key_format"):
        score(pack(keys), np.zeros((1, 2), np.int8), query, "int4")
    with pytest.raises(ValueError, match="int8, int4 or fp16"):
        query.native_for("int2")
    with pytest.raises(ValueError, match="uint16"):
        _native.pack_keys(keys, pack(keys), 0, "fp16")
