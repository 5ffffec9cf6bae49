"""Beats by hand: what kernel.md says about the bytes, against the layout of the testbench and that of the product."""

from __future__ import annotations

import numpy as np
import pytest

from tb.qk_layout import Format, Geometry, argument_status
from tb.qk_score.cases import Stimulus

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("fmt", "heads", "group", "d", "pair", "shape"),
    [
        # [3:0] beats per group, [4] pair, [5] dual, [10:8] log2 banks, [24:16] groups
        (Format.FP16_INT8, 8, 4, 128, False, 4 | 2 << 8 | 8 << 16),
        (Format.FP16_INT8, 3, 3, 64, False, 2 | 2 << 8 | 3 << 16),
        (Format.FP16_INT4, 1, 1, 32, False, 1 | 1 << 8 | 1 << 16),  # at least two banks
        (Format.FP16_INT8, 2, 8, 80, False, 3 | 3 << 8 | 2 << 16),
        (Format.INT8, 8, 4, 128, False, 2 | 3 << 8 | 8 << 16),
        (Format.INT8, 8, 5, 128, False, 2 | 1 << 5 | 3 << 8 | 8 << 16),
        (Format.INT8, 3, 1, 32, True, 1 | 1 << 4 | 1 << 8 | 2 << 16),
        (Format.INT4, 8, 4, 128, False, 1 | 4 << 8 | 8 << 16),
        (Format.INT4, 4, 8, 64, True, 1 | 1 << 4 | 1 << 5 | 4 << 8 | 2 << 16),
    ],
)
def test_shape(fmt: Format, heads: int, group: int, d: int, pair: bool, shape: int) -> None:
    assert Geometry.fit(fmt, heads, group, d, pair=pair).shape == shape


@pytest.mark.parametrize(
    ("fmt", "heads", "group", "d", "pair"),
    [
        (Format.FP16_INT8, 1, 9, 32, False),
        (Format.FP16_INT8, 257, 1, 32, False),
        (Format.FP16_INT8, 2, 1, 257 + 32, False),
        (Format.INT8, 2, 1, 33, True),
        (Format.FP16_INT4, 2, 1, 16, True),
    ],
)
def test_what_does_not_fit_is_refused(fmt: Format, heads: int, group: int, d: int, pair: bool) -> None:
    with pytest.raises(ValueError, match=r"launches|limits|share a beat"):
        Geometry.fit(fmt, heads, group, d, pair=pair)


def test_keys_are_token_major_and_padded_with_zeros() -> None:
    geometry = Geometry.fit(Format.FP16_INT8, 2, 1, 40)
    keys = RNG.integers(1, 1 << 16, (3, 2, 40)).astype(np.uint16)
    image = np.frombuffer(geometry.keys(keys), "<u2").reshape(3, 2, 2 * 32)
    np.testing.assert_array_equal(image[:, :, :40], keys)
    assert not image[:, :, 40:].any()


def test_int4_keys_have_the_low_nibble_first() -> None:
    geometry = Geometry.fit(Format.INT4, 1, 1, 4)
    image = geometry.keys(np.array([[[1, -1, -8, 7]]]))
    assert image[:2] == bytes([0xF1, 0x78])
    assert len(image) == 64
    assert not any(image[2:])


def test_a_pair_shares_a_beat_and_an_odd_head_has_a_partner_of_zeros() -> None:
    geometry = Geometry.fit(Format.INT8, 3, 1, 32, pair=True)
    keys = RNG.integers(-128, 128, (2, 3, 32))
    image = np.frombuffer(geometry.keys(keys), np.int8).reshape(2, 4, 32)
    np.testing.assert_array_equal(image[:, :3], keys)
    assert not image[:, 3].any()


def test_exponents_are_padded_to_beats() -> None:
    geometry = Geometry.fit(Format.FP16_INT8, 65, 1, 32)
    exponents = RNG.integers(-128, 128, (2, 65))
    image = np.frombuffer(geometry.exponents(exponents), np.int8).reshape(2, 128)
    np.testing.assert_array_equal(image[:, :65], exponents)


def test_queries_stand_in_the_order_of_group_beat_pass_query_lane() -> None:
    geometry = Geometry.fit(Format.INT8, 2, 6, 128)
    q8 = RNG.integers(-128, 128, (2, 6, 128))
    m, r = RNG.integers(0, 1 << 16, (2, 6)), RNG.integers(0, 64, (2, 6))
    o = RNG.integers(-(1 << 23), 1 << 23, (2, 6))
    image = geometry.query(q8, m, r, o, np.ones((2, 6), bool), RNG)
    slots = np.frombuffer(image[: 2 * 2 * 64], [("m", "<u2"), ("r", "u1"), ("flags", "u1"), ("o", "<i4")])
    banks = np.frombuffer(image[2 * 2 * 64 :], np.int8).reshape(2, 2, 2, 4, 64)
    for head in range(2):
        for query in range(6):
            turn, place = divmod(query, 4)
            slot = slots.reshape(2, 2, 8)[head, turn, place]
            assert slot.tolist() == (m[head, query], r[head, query], 1, o[head, query])
            np.testing.assert_array_equal(banks[head, :, turn, place].reshape(-1), q8[head, query])
    assert not (slots.reshape(2, 2, 8)["flags"][:, 1, 2:] & 1).any()


def test_queries_of_a_pair_stand_side_by_side() -> None:
    geometry = Geometry.fit(Format.INT4, 2, 3, 64, pair=True)
    q8 = RNG.integers(-128, 128, (2, 3, 64))
    m = np.arange(6).reshape(2, 3)
    image = geometry.query(q8, m, m * 0, m * 0, np.ones((2, 3), bool), RNG)
    banks = np.frombuffer(image[64:], np.int8).reshape(4, 2, 64)  # [query][head][lane]
    np.testing.assert_array_equal(banks[:3], q8.transpose(1, 0, 2))
    slots = np.frombuffer(image[:64], "<u2").reshape(8, 4)[:, 0]
    np.testing.assert_array_equal(slots[:6].reshape(3, 2), m.T)


@pytest.mark.parametrize(
    ("n", "shape", "fmt", "status"),
    [
        (0, 0x10101, 0, 0),
        (1 << 20, 0x10101, 0x10, 0),
        (-1, 0x10101, 0, 1),
        ((1 << 20) + 1, 0x10101, 0, 1),
        (5, 0x10100, 0, 2),
        (5, 0x10109, 0, 2),
        (5, 0x00101, 0, 2),
        (5, 1 << 16 | 1 << 8 | 1, 3, 2),  # fewer banks than one INT4 query needs
        (5, 1 << 16 | 4 << 8 | 1, 2, 2),  # more banks than INT8 has
        (5, 129 << 16 | 1 << 8 | 2, 0, 2),
        (5, 0x10111, 0, 2),
        (5, 0x10131, 2, 0),
        (5, 0x10132, 2, 2),
        (5, 0x10101, 4, 4),
        (-5, 0, -1, 7),
    ],
)
def test_status_of_arguments(n: int, shape: int, fmt: int, status: int) -> None:
    assert argument_status(n, shape, fmt) == status


@pytest.mark.parametrize("reduce", ["max", "sum"])
@pytest.mark.parametrize("fmt", list(Format))
def test_stimuli_tell_scores_apart(fmt: Format, reduce: str) -> None:
    """A stimulus whose scores all saturate would hide every fault."""
    for kind in ("bits", "exact"):
        launch = Stimulus(fmt, 4, 4, 128, 1024, reduce, kind).launch()  # type: ignore[arg-type]
        tuples = np.frombuffer(launch.expected, "<i2")[: 2 * 1024].reshape(1024, 2)
        assert len(np.unique(tuples[:, 1])) > 100
