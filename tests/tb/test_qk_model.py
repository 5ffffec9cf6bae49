"""The NumPy model of qk_score against examples worked out by hand from kernel.md."""

from __future__ import annotations

import struct
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tb.qk_model import (
    INT4_LIMIT,
    INT8_LIMIT,
    SLOT_BYTES,
    STATUS_FORMAT,
    STATUS_SHAPE,
    STATUS_TOKENS,
    Block,
    cast_fp16,
    logits,
    parse_blocks,
    score_blocks,
    scores,
    token_exponents,
)

TRAILER = 4096  # offset of the trailer in a slot
Int64s = npt.NDArray[np.int64]


# ------------------------------------------------------------------------------------------------------- cast


def cast_one(bits: int, exponent: int = 0, limit: int = INT8_LIMIT) -> int:
    return int(cast_fp16(np.array([bits], dtype=np.uint16), exponent, limit)[0])


@pytest.mark.parametrize(
    ("bits", "exponent", "expected"),
    [
        pytest.param(0x3800, 0, 0, id="0.5 to the even 0"),
        pytest.param(0x3E00, 0, 2, id="1.5 to the even 2"),
        pytest.param(0x4100, 0, 2, id="2.5 to the even 2"),
        pytest.param(0xB800, 0, 0, id="-0.5"),
        pytest.param(0xBE00, 0, -2, id="-1.5"),
        pytest.param(0xC100, 0, -2, id="-2.5"),
        pytest.param(0x3801, 0, 1, id="the next above 0.5"),
        pytest.param(0x37FF, 0, 0, id="the next below 0.5"),
        pytest.param(0x3DFF, 0, 1, id="the next below 1.5"),
        pytest.param(0x3A00, 1, 2, id="0.75 * 2 is the tie 1.5"),
        pytest.param(0x4200, -1, 2, id="3 / 2 is the tie 1.5"),
        pytest.param(0x4500, -1, 2, id="5 / 2 is the tie 2.5"),
        pytest.param(0x0000, 15, 0, id="0"),
        pytest.param(0x8000, 15, 0, id="-0"),
        pytest.param(0x0001, 15, 0, id="smallest subnormal, 2**-9"),
        pytest.param(0x0100, 15, 0, id="subnormal tie 0.5"),
        pytest.param(0x0101, 15, 1, id="subnormal above 0.5"),
        pytest.param(0x0300, 15, 2, id="subnormal tie 1.5"),
        pytest.param(0x8300, 15, -2, id="subnormal tie -1.5"),
        pytest.param(0x03FF, 15, 2, id="largest subnormal, 1023 / 512"),
        pytest.param(0x0400, 15, 2, id="smallest normal, 2**-14"),
        pytest.param(0x7BFF, -16, 1, id="65504 / 65536"),
        pytest.param(0x7E00, 0, 0, id="quiet NaN"),
        pytest.param(0x7C01, 0, 0, id="signalling NaN"),
        pytest.param(0xFFFF, 0, 0, id="NaN with the sign bit"),
        pytest.param(0x7E00, -16, 0, id="NaN, scaled"),
        pytest.param(0x7C00, 0, 127, id="inf"),
        pytest.param(0xFC00, -16, -127, id="-inf, scaled down"),
        pytest.param(0x57F0, 0, 127, id="127"),
        pytest.param(0x57F8, 0, 127, id="127.5"),
        pytest.param(0x5800, 0, 127, id="128"),
        pytest.param(0xD800, 0, -127, id="-128: the range is symmetric"),
        pytest.param(0x7BFF, 15, 127, id="65504 * 2**15"),
        pytest.param(0x7BFF, -17, 1, id="exponent below -16 counts as -16"),
        pytest.param(0x7BFF, -128, 1, id="exponent -128 counts as -16"),
        pytest.param(0x0100, 16, 0, id="exponent above 15 counts as 15"),
        pytest.param(0x0101, 127, 1, id="exponent 127 counts as 15"),
    ],
)
def test_cast_to_int8(bits: int, exponent: int, expected: int) -> None:
    assert cast_one(bits, exponent) == expected


@pytest.mark.parametrize(
    ("bits", "expected"),
    [
        pytest.param(0x4680, 6, id="6.5 to the even 6"),
        pytest.param(0x4700, 7, id="7"),
        pytest.param(0x4780, 7, id="7.5"),
        pytest.param(0xC800, -7, id="-8: the range is symmetric"),
        pytest.param(0x7C00, 7, id="inf"),
        pytest.param(0xFC00, -7, id="-inf"),
        pytest.param(0x7E00, 0, id="NaN"),
    ],
)
def test_cast_to_int4(bits: int, expected: int) -> None:
    assert cast_one(bits, limit=INT4_LIMIT) == expected


def cast_by_integers(bits: Int64s, exponent: int, limit: int) -> Int64s:
    """The same cast from the fields of FP16 alone: k = significand * 2**point."""
    sign, field, fraction = bits >> 15, bits >> 10 & 31, bits & 1023
    significand = np.where(field == 0, fraction, fraction + 1024)
    point = np.maximum(field, 1) - 25 + exponent
    left, right = np.maximum(point, 0), np.maximum(-point, 0)
    quotient = significand >> right
    twice_rest = (significand - (quotient << right)) * 2
    unit = np.int64(1) << right
    round_up = (twice_rest > unit) | ((twice_rest == unit) & (quotient % 2 == 1))
    magnitude = np.where(point >= 0, significand << left, quotient + round_up)
    magnitude = np.where(field == 31, limit, np.minimum(magnitude, limit))
    magnitude = np.where((field == 31) & (fraction != 0), 0, magnitude)
    return np.where(sign == 1, -magnitude, magnitude)


@pytest.mark.parametrize("limit", [INT8_LIMIT, INT4_LIMIT])
@pytest.mark.parametrize("exponent", [-16, -7, -1, 0, 1, 4, 15])
def test_cast_of_every_pattern(exponent: int, limit: int) -> None:
    bits = np.arange(1 << 16)
    expected = cast_by_integers(bits, exponent, limit)
    np.testing.assert_array_equal(cast_fp16(bits.astype(np.uint16), exponent, limit), expected)


def test_cast_broadcasts_one_exponent_per_tile_and_head() -> None:
    n, heads, d = 65, 2, 3
    exponents = np.array([[0, 1], [2, -1]], dtype=np.int8)
    ones = np.full((n, heads, d), 0x4400, dtype=np.uint16)  # 4.0
    keys = cast_fp16(ones, token_exponents(exponents, n)[:, :, None], INT8_LIMIT)
    assert keys.shape == (n, heads, d)
    assert keys[63].tolist() == [[4] * 3, [8] * 3]
    assert keys[64].tolist() == [[16] * 3, [2] * 3]


def test_cast_rejects_values_instead_of_patterns() -> None:
    with pytest.raises(ValueError, match="uint16"):
        cast_fp16(np.zeros(1, dtype=np.float16), 0, INT8_LIMIT)


# ----------------------------------------------------------------------------------------------------- logits


def logit(query: list[int], key: list[int], *, m: int, r: int, e: int = 0) -> int:
    """The logit of one token, one head, one query."""
    result = logits(
        np.array([[query]]),
        np.array([[key]]),
        np.array([[e]], dtype=np.int8),
        np.array([[m]]),
        np.array([[r]]),
    )
    assert result.shape == (1, 1, 1)
    assert result.dtype == np.int64
    return int(result[0, 0, 0])


@pytest.mark.parametrize(
    ("query", "key", "m", "r", "e", "expected"),
    [
        pytest.param([3, -2], [5, 4], 10, 0, 0, 70, id="(15 - 8) * 10"),
        pytest.param([3], [5], 10, 3, 0, 18, id="150 >> 3"),
        pytest.param([-3], [5], 10, 3, 0, -19, id="-150 >> 3 is arithmetic"),
        pytest.param([3], [5], 10, 1, 2, 18, id="the key's exponent adds to the shift"),
        pytest.param([3], [5], 10, 5, -2, 18, id="and may be negative"),
        pytest.param([3], [5], 10, 2, -3, 150, id="shift -1 counts as 0"),
        pytest.param([3], [5], 10, 0, -16, 150, id="shift -16 counts as 0"),
        pytest.param([127] * 512, [127] * 512, 65535, 63, 15, 0, id="shift 78 counts as 40"),
        pytest.param([-127] * 512, [127] * 512, 65535, 63, 15, -1, id="shift 78 counts as 40, negative"),
        pytest.param([3], [5], 10, 18, -128, 37, id="exponent -128 counts as -16: 150 >> 2"),
        pytest.param([127] * 8, [127] * 8, 65535, 0, 127, 258060, id="exponent 127 counts as 15"),
        pytest.param([3], [5], 0, 0, 0, 0, id="m = 0"),
        pytest.param([64], [64], 2047, 0, 0, 8384512, id="below saturation"),
        pytest.param([64], [64], 2048, 0, 0, 8388607, id="2**23 saturates"),
        pytest.param([-64], [64], 2048, 0, 0, -8388608, id="-2**23 is the least"),
        pytest.param([-64], [64], 2049, 0, 0, -8388608, id="-2**23 - 4096 saturates"),
        pytest.param([127] * 256, [127] * 256, 65535, 0, 0, 8388607, id="far above saturation"),
        pytest.param([64], [64], 2048, 1, 0, 4194304, id="the shift comes before saturation"),
        pytest.param([127, 1], [-128, -8], 1, 0, 0, -16264, id="stored -128 and -8"),
    ],
)
def test_logit(query: list[int], key: list[int], m: int, r: int, e: int, expected: int) -> None:
    assert logit(query, key, m=m, r=r, e=e) == expected


def test_logits_keep_tokens_heads_and_queries_apart() -> None:
    q8 = np.array([[[1, 0], [0, 1]], [[2, 0], [0, 3]]])  # [H=2, G=2, d=2]
    keys = np.array([[[5, 7], [11, 13]], [[1, 2], [3, 4]]])  # [n=2, H=2, d=2]
    m = np.array([[8, 16], [32, 64]])
    r = np.array([[0, 1], [2, 3]])
    exponents = np.array([[0, 1]], dtype=np.int8)
    # token 0, head 1: 22 * 32 >> 3 = 88, 39 * 64 >> 4 = 156; token 1: 6 * 32 >> 3 = 24, 12 * 64 >> 4 = 48
    expected = [[[40, 56], [88, 156]], [[8, 16], [24, 48]]]
    assert logits(q8, keys, exponents, m, r).tolist() == expected


def test_exponents_change_at_each_64th_token() -> None:
    n = 130
    exponents = np.array([[0], [1], [2]], dtype=np.int8)
    keys = np.full((n, 1, 1), 4)
    one = np.array([[1]])
    result = logits(np.array([[[1]]]), keys, exponents, one, 0 * one)[:, 0, 0]
    assert result.tolist() == [4] * 64 + [2] * 64 + [1] * 2


@pytest.mark.parametrize(
    ("argument", "value", "message"),
    [
        ("q8", np.full((1, 1, 2), 128), "q8 spans"),
        ("keys", np.full((3, 1, 2), -129), "keys spans"),
        ("m", np.array([[65536]]), "m spans"),
        ("r", np.array([[64]]), "r spans"),
        ("q8", np.zeros((1, 1, 3), dtype=int), "head dimension"),
        ("m", np.zeros((1, 2), dtype=int), r"must be \[H, G\]"),
        ("exponents", np.zeros((2, 1), dtype=int), r"must be \[1, H\]"),
        ("exponents", np.zeros((1, 2), dtype=int), "2 heads"),
    ],
)
def test_logits_name_the_argument_outside_the_contract(argument: str, value: Int64s, message: str) -> None:
    arguments: dict[str, Any] = {
        "q8": np.zeros((1, 1, 2), dtype=int),
        "keys": np.zeros((3, 1, 2), dtype=int),
        "exponents": np.zeros((1, 1), dtype=int),
        "m": np.zeros((1, 1), dtype=int),
        "r": np.zeros((1, 1), dtype=int),
    }
    with pytest.raises(ValueError, match=message):
        logits(**(arguments | {argument: value}))


# ----------------------------------------------------------------------------------------------------- scores


def score_of(
    t: list[list[int]],
    reduce: Literal["max", "sum"],
    *,
    o: list[list[int]] | None = None,
    enabled: list[list[bool]] | None = None,
) -> int:
    """The score of one token whose logits are t [H, G], each a multiple of its sign times m (q = k = 1)."""
    wanted = np.array(t)
    sign = np.sign(wanted)[:, :, None]
    result = scores(
        q8=sign * 64,
        keys=np.full((1, wanted.shape[0], 1), 64),
        exponents=np.zeros((1, wanted.shape[0]), dtype=np.int8),
        m=np.where(abs(wanted) < 65536, abs(wanted), 65535),
        r=np.where(abs(wanted) < 65536, 12, 0),  # 64 * 64 * m >> 12 = m, and beyond 16 bits: saturated to 24
        o=np.zeros_like(wanted) if o is None else np.array(o),
        enabled=np.ones(wanted.shape, dtype=bool) if enabled is None else np.array(enabled),
        reduce=reduce,
    )
    assert result.shape == (1,)
    assert result.dtype == np.int16
    return int(result[0])


T_MAX, T_MIN = 8388607, -8388608


def test_max_and_sum_run_over_all_heads_and_queries() -> None:
    assert score_of([[1, -7], [30, 5]], "max") == 30
    assert score_of([[1, -7], [30, 5]], "sum") == 29
    assert score_of([[-9, -7], [-8, -10]], "max") == -7


def test_disabled_queries_do_not_count() -> None:
    enabled = [[True, True], [False, True]]
    assert score_of([[1, -7], [30, 5]], "max", enabled=enabled) == 5
    assert score_of([[1, -7], [30, 5]], "sum", enabled=enabled) == -1


def test_log_normaliser_is_subtracted_per_query() -> None:
    o = [[-4, 0], [28, 10]]  # u = 5, -7, 2, -5
    assert score_of([[1, -7], [30, 5]], "max", o=o) == 5
    assert score_of([[1, -7], [30, 5]], "sum", o=o) == -5


def test_log_normaliser_is_the_low_24_bits_signed() -> None:
    assert score_of([[0]], "max", o=[[0x00FFFFFF]]) == 1
    assert score_of([[0]], "max", o=[[0x7F000003]]) == -3
    assert score_of([[0]], "max", o=[[-0x01000000 + 5]]) == -5


@pytest.mark.parametrize("reduce", ["max", "sum"])
@pytest.mark.parametrize(
    ("t", "o", "expected"),
    [(32767, 0, 32767), (32767, -1, 32767), (-32767, 1, -32768), (-32767, 2, -32768), (T_MIN, 0, -32768)],
)
def test_score_is_clamped_to_int16(t: int, o: int, expected: int, reduce: Literal["max", "sum"]) -> None:
    assert score_of([[t]], reduce, o=[[o]]) == expected


def test_sum_is_exact_before_the_clamp() -> None:
    assert score_of([[T_MAX, T_MIN]], "sum") == -1
    # u itself leaves 24 bits: 16777215 - 16777215
    assert score_of([[T_MAX, T_MIN]], "sum", o=[[T_MIN, T_MAX]]) == 0
    # and the max is over exact u, whatever the clamp does later
    assert score_of([[T_MAX, 40000]], "max", o=[[T_MAX, 39000]]) == 1000


def test_nothing_enabled_gives_the_neutral_element() -> None:
    nothing = [[False, False]]
    assert score_of([[1, 2]], "max", enabled=nothing) == -32768
    assert score_of([[1, 2]], "sum", enabled=nothing) == 0


@pytest.mark.parametrize("reduce", ["max", "sum"])
def test_no_tokens_no_scores(reduce: Literal["max", "sum"]) -> None:
    one = np.ones((1, 1), dtype=int)
    keys, exponents = np.zeros((0, 1, 1), dtype=int), np.zeros((0, 1), dtype=np.int8)
    result = scores(one[:, :, None], keys, exponents, m=one, r=one, o=one, enabled=one > 0, reduce=reduce)
    assert result.shape == (0,)
    assert result.dtype == np.int16


def test_unknown_reduce_is_named() -> None:
    with pytest.raises(ValueError, match="'mean'"):
        score_of([[1]], "mean")  # type: ignore[arg-type]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(1, 130),
    heads=st.integers(1, 3),
    queries=st.integers(1, 3),
    d=st.integers(1, 5),
    reduce=st.sampled_from(["max", "sum"]),
)
def test_scores_by_python_integers(
    seed: int, n: int, heads: int, queries: int, d: int, reduce: Literal["max", "sum"]
) -> None:
    rng = np.random.default_rng(seed)
    q8 = rng.integers(-127, 128, (heads, queries, d))
    keys = rng.integers(-128, 128, (n, heads, d))
    exponents = rng.integers(-128, 128, (-(-n // 64), heads)).astype(np.int8)
    m = rng.integers(0, 65536, (heads, queries))
    r = rng.integers(0, 64, (heads, queries))
    o = rng.integers(-(2**15), 2**15, (heads, queries))
    enabled = rng.random((heads, queries)) < 0.8
    enabled[0, 0] = True

    token = int(rng.integers(n))
    terms = []
    for h in range(heads):
        e = max(-16, min(15, int(exponents[token // 64, h])))
        for g in range(queries):
            s = sum(int(q8[h, g, i]) * int(keys[token, h, i]) for i in range(d))
            t = s * int(m[h, g]) // 2 ** max(0, min(40, int(r[h, g]) + e))
            if enabled[h, g]:
                terms.append(max(T_MIN, min(T_MAX, t)) - int(o[h, g]))
    expected = max(terms) if reduce == "max" else sum(terms)

    result = scores(q8, keys, exponents, m, r, o, enabled, reduce)
    assert int(result[token]) == max(-32768, min(32767, expected))


# ----------------------------------------------------------------------------------------------------- blocks


def ramp(n: int) -> npt.NDArray[np.int16]:
    """Scores -3, -2, -1, 0, 1, ... of n tokens."""
    return np.arange(-3, n - 3).astype(np.int16)


def word(data: bytes, offset: int) -> int:
    return int.from_bytes(data[offset : offset + 4], "little")


def test_one_token_byte_by_byte() -> None:
    data = score_blocks(np.array([-2], dtype=np.int16), first_token=0x40, tag=0x01020304, min_score=-32768)
    assert len(data) == 65 * 64
    assert data[:4] == bytes([0x00, 0x00, 0xFE, 0xFF])  # offset 0, score -2
    assert data[4:TRAILER] == b"\xff" * 4092
    trailer = [
        b"QKS1",  # magic 0x31534B51
        b"\x04\x03\x02\x01",  # tag
        b"\x40\x00\x00\x00",  # first token
        b"\x01\x00\x00\x00",  # scanned
        b"\x01\x00\x00\x00",  # emitted
        b"\xfe\xff\xff\xff",  # maximum
        b"\x00\x00\x00\x00",  # status
        b"\x00\x00\x00\x00",  # block
        b"\x01\x00\x00\x00",  # number of blocks
        bytes(24),
        b"\xfb\xfc\xfd\xfe",  # ~tag
    ]
    assert data[TRAILER:] == b"".join(trailer)


def test_no_tokens_still_write_one_slot() -> None:
    data = score_blocks(ramp(0), first_token=1024, tag=7, min_score=0)
    assert len(data) == SLOT_BYTES == 4160
    assert data[:TRAILER] == b"\xff" * 4096
    maximum_if_none = -32768 & 0xFFFFFFFF
    trailer = (0x31534B51, 7, 1024, 0, 0, maximum_if_none, 0, 0, 1)
    assert struct.unpack("<9I", data[TRAILER : TRAILER + 36]) == trailer


@pytest.mark.parametrize("status", [STATUS_TOKENS, STATUS_SHAPE, STATUS_FORMAT, 7])
def test_illegal_arguments_write_one_slot_and_nothing_scanned(status: int) -> None:
    data = score_blocks(ramp(2000), first_token=64, tag=-1, min_score=-32768, status=status)
    [block] = parse_blocks(data)
    assert (block.status, block.scanned, block.emitted, block.maximum) == (status, 0, 0, -32768)
    assert (block.first_token, block.index, block.count, block.tag) == (64, 0, 1, 0xFFFFFFFF)
    assert data[:TRAILER] == b"\xff" * 4096


@pytest.mark.parametrize(
    ("n", "scanned"),
    [(1023, [1023]), (1024, [1024]), (1025, [1024, 1]), (2048, [1024, 1024]), (2049, [1024, 1024, 1])],
)
def test_slots_around_the_block_size(n: int, scanned: list[int]) -> None:
    data = score_blocks(ramp(n), first_token=128, tag=5, min_score=-32768)
    assert len(data) == len(scanned) * 4160
    for b, count in enumerate(scanned):
        slot = data[b * 4160 : (b + 1) * 4160]
        start = 1024 * b
        assert struct.unpack("<9I", slot[TRAILER : TRAILER + 36]) == (
            *(0x31534B51, 5, 128 + start, count, count),
            *(start + count - 4, 0, b, len(scanned)),
        )
        for offset in (0, count // 2, count - 1):
            assert struct.unpack("<Hh", slot[4 * offset : 4 * offset + 4]) == (offset, start + offset - 3)
        assert slot[4 * count : TRAILER] == b"\xff\xff\xff\xff" * (1024 - count)


def test_tuples_under_min_score_are_left_out() -> None:
    values = np.array([5, -1, 4, 32767, 3, 4, -32768], dtype=np.int16)
    data = score_blocks(values, first_token=0, tag=1, min_score=4)
    assert data[:16] == struct.pack("<HhHhHhHh", 0, 5, 2, 4, 3, 32767, 5, 4)  # 4 itself stays, in token order
    assert data[16:TRAILER] == b"\xff" * 4080
    assert (word(data, TRAILER + 12), word(data, TRAILER + 16)) == (7, 4)


@pytest.mark.parametrize(("min_score", "emitted"), [(-(2**31), 3), (-32768, 3), (32767, 1), (32768, 0), (2**31 - 1, 0)])
def test_min_score_compares_as_32_bits(min_score: int, emitted: int) -> None:
    values = np.array([-32768, 0, 32767], dtype=np.int16)
    [block] = parse_blocks(score_blocks(values, first_token=0, tag=1, min_score=min_score))
    assert (block.scanned, block.emitted, block.maximum) == (3, emitted, 32767)


def test_everything_filtered_keeps_the_maximum_of_each_block() -> None:
    values = np.concatenate([np.full(1024, -50), [-60]]).astype(np.int16)
    blocks = parse_blocks(score_blocks(values, first_token=0, tag=1, min_score=0))
    assert [(b.scanned, b.emitted, b.maximum) for b in blocks] == [(1024, 0, -50), (1, 0, -60)]


def test_first_token_and_tag_are_32_bits() -> None:
    data = score_blocks(ramp(1025), first_token=0x7FFFFC00, tag=-2, min_score=0)
    first, second = parse_blocks(data)
    assert (first.first_token, second.first_token) == (0x7FFFFC00, 0x80000000)
    assert first.tag == 0xFFFFFFFE
    assert word(data, TRAILER + 60) == 1


def test_score_blocks_reject_what_the_kernel_would_not_score() -> None:
    with pytest.raises(ValueError, match="status 1"):
        score_blocks(np.zeros(2**20 + 1, dtype=np.int16), 0, 0, 0)
    with pytest.raises(ValueError, match="int16"):
        score_blocks(np.zeros(1, dtype=np.int64), 0, 0, 0)


# ---------------------------------------------------------------------------------------------------- parsing


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.one_of(st.sampled_from([0, 1, 1023, 1024, 1025]), st.integers(0, 3000)),
    first_token=st.integers(0, 2**31 - 1 - 2**20),
    tag=st.integers(-(2**31), 2**31 - 1),
    min_score=st.integers(-33000, 33000),
)
def test_round_trip(seed: int, n: int, first_token: int, tag: int, min_score: int) -> None:
    values = np.random.default_rng(seed).integers(-32768, 32768, n).astype(np.int16)
    blocks = parse_blocks(score_blocks(values, first_token, tag, min_score))

    kept = np.flatnonzero(values >= min_score)
    np.testing.assert_array_equal(np.concatenate([b.positions for b in blocks]), first_token + kept)
    np.testing.assert_array_equal(np.concatenate([b.scores for b in blocks]), values[kept])
    assert sum(b.scanned for b in blocks) == n
    assert max(b.maximum for b in blocks) == max(values, default=-32768)
    for index, block in enumerate(blocks):
        assert (block.index, block.count, block.status) == (index, max(1, -(-n // 1024)), 0)
        assert (block.tag, block.emitted) == (tag % 2**32, len(block.scores))
        assert block.first_token == first_token + 1024 * index


def test_a_run_of_slots_parses_without_the_slots_before() -> None:
    data = score_blocks(ramp(2100), first_token=0, tag=1, min_score=0)
    blocks: list[Block] = parse_blocks(data[SLOT_BYTES:])
    assert [b.index for b in blocks] == [1, 2]


@pytest.mark.parametrize(
    ("offset", "value", "message"),
    [
        pytest.param(TRAILER, 0, "slot 0: magic is 0x00000000", id="magic"),
        pytest.param(TRAILER + 4, 10, "slot 0: torn read", id="tag"),
        pytest.param(TRAILER + 60, 9, "slot 0: torn read", id="~tag"),
        pytest.param(TRAILER + 36, 1, "36-59", id="first zero word"),
        pytest.param(TRAILER + 56, 1 << 31, "36-59", id="last zero word"),
        pytest.param(TRAILER + 12, 1025, "scanned is 1025", id="scanned too many"),
        pytest.param(TRAILER + 12, 1023, "scanned is 1023 in block 0 of 2", id="gap between blocks"),
        pytest.param(TRAILER + 16, 1025, "emitted 1025", id="emitted more than scanned"),
        pytest.param(TRAILER + 16, 1020, "not padding", id="emitted too few"),
        pytest.param(TRAILER + 16, 1022, "do not ascend", id="emitted too many"),
        pytest.param(TRAILER + 20, 1, "maximum is 1", id="maximum"),
        pytest.param(TRAILER + 24, 2, "status 2", id="status of scanned tokens"),
        pytest.param(TRAILER + 28, 2, "block index 2", id="index beyond the count"),
        pytest.param(0, 0x0000_0004, "do not ascend", id="tuple order"),
        pytest.param(SLOT_BYTES, 0x03FD_0001, "slot 1: tuple offsets", id="offset beyond scanned"),
        pytest.param(SLOT_BYTES + 4, 0xFFFF_0000, "slot 1: a tuple after the 1", id="padding, low half"),
        pytest.param(SLOT_BYTES + 4, 0x0000_FFFF, "slot 1: a tuple after the 1", id="padding, high half"),
        pytest.param(SLOT_BYTES + TRAILER + 8, 64, "slot 1: first_token is 64, 1024", id="first token"),
        pytest.param(SLOT_BYTES + TRAILER + 28, 0, "slot 1: scanned is 1 in block 0", id="index repeated"),
        pytest.param(SLOT_BYTES + TRAILER + 32, 3, "slot 1: scanned is 1 in block 1 of 3", id="count"),
    ],
)
def test_parse_names_what_is_wrong(offset: int, value: int, message: str) -> None:
    data = bytearray(score_blocks(ramp(1025), first_token=0, tag=9, min_score=0))
    data[offset : offset + 4] = value.to_bytes(4, "little")
    with pytest.raises(ValueError, match=message):
        parse_blocks(bytes(data))


def test_parse_rejects_slots_of_different_launches() -> None:
    old = score_blocks(ramp(2048), first_token=0, tag=1, min_score=0)
    new = score_blocks(ramp(2048), first_token=0, tag=2, min_score=0)
    with pytest.raises(ValueError, match="slot 1: tag is 1, 2"):
        parse_blocks(new[:SLOT_BYTES] + old[SLOT_BYTES:])
    with pytest.raises(ValueError, match="slot 1: block index is 0, 1"):
        parse_blocks(new[:SLOT_BYTES] * 2)


def test_parse_rejects_a_maximum_of_nothing() -> None:
    data = bytearray(score_blocks(ramp(0), first_token=0, tag=1, min_score=0))
    data[TRAILER + 20 : TRAILER + 24] = bytes(4)
    with pytest.raises(ValueError, match="maximum of nothing scanned is 0"):
        parse_blocks(bytes(data))


@pytest.mark.parametrize("length", [0, 1, 4159, 4161])
def test_parse_rejects_partial_slots(length: int) -> None:
    with pytest.raises(ValueError, match=f"{length} bytes"):
        parse_blocks(bytes(length))
