"""Where heads stand in beats: bytes worked out by hand from docs/kernel.md, and what cannot be laid out."""

from __future__ import annotations

import numpy as np
import pytest

from hillinfer.csd.abi import Layout
from hillinfer.errors import DeviceError
from hillinfer.kv.query import QuantisedQuery


@pytest.mark.parametrize(
    ("layout", "beats", "banks_log2", "dual", "groups"),
    [
        (Layout("fp16_int8", 8, 4, 128), 4, 2, 0, 8),
        (Layout("fp16_int8", 3, 3, 64), 2, 2, 0, 3),
        (Layout("fp16_int4", 1, 1, 32), 1, 1, 0, 1),  # one query, two banks
        (Layout("fp16_int8", 1, 8, 80), 3, 3, 0, 1),
        (Layout("int8", 8, 4, 128), 2, 3, 0, 8),
        (Layout("int8", 8, 1, 128), 2, 1, 0, 8),
        (Layout("int8", 2, 7, 96), 2, 3, 1, 2),
        (Layout("int8", 5, 4, 32, pair=True), 1, 3, 0, 3),
        (Layout("int4", 8, 3, 128), 1, 4, 0, 8),
        (Layout("int4", 8, 8, 64, pair=True), 1, 4, 1, 4),
        (Layout("int4", 8, 20, 128), 1, 4, 1, 8),
    ],
)
def test_the_shape_of_a_geometry(layout, beats, banks_log2, dual, groups):
    assert layout.shape == beats | layout.pair << 4 | dual << 5 | banks_log2 << 8 | groups << 16
    assert layout.row_bytes == 64 * beats * groups


def test_keys_stand_token_by_token_head_by_head():
    keys = np.arange(2 * 2 * 3, dtype=np.uint16).reshape(2, 2, 3)
    beats = Layout("fp16_int8", 2, 1, 3).pack_keys(keys)
    assert beats.shape == (4, 64)
    assert beats.ctypes.data % 64 == 0
    words = beats.view("<u2")
    np.testing.assert_array_equal(words[:, :3], keys.reshape(4, 3))
    assert not words[:, 3:].any()
    half = keys.view(np.float16)
    np.testing.assert_array_equal(Layout("fp16_int8", 2, 1, 3).pack_keys(half), beats)


def test_int4_keys_have_the_low_nibble_first_and_pairs_share_a_beat():
    keys = np.array([[[1, -1, 2], [3, -8, 7], [5, 6, -7]]], np.int8)
    plain = Layout("int4", 3, 1, 3).pack_keys(keys)
    assert [beat[:3].tolist() for beat in plain] == [[0xF1, 0x02, 0], [0x83, 0x07, 0], [0x65, 0x09, 0]]
    paired = Layout("int4", 3, 1, 3, pair=True).pack_keys(keys)
    assert paired.shape == (2, 64)
    assert [beat[0:2].tolist() + beat[32:34].tolist() for beat in paired] == [[0xF1, 2, 0x83, 7], [0x65, 9, 0, 0]]


def test_exponents_fill_whole_beats_and_pairs_share_one():
    exponents = np.array([[1, 2, 3], [4, 5, 6]], np.int8)
    beats = Layout("int8", 3, 1, 32).pack_exponents(exponents)
    assert beats.shape == (2, 64)
    np.testing.assert_array_equal(beats[:, :3], exponents)
    pair = Layout("int8", 3, 1, 32, pair=True)
    with pytest.raises(DeviceError, match="cast them together"):
        pair.pack_exponents(exponents)
    shared = pair.pack_exponents(np.array([[1, 1, 3]], np.int8))
    assert shared[0, :3].tolist() == [1, 3, 0]
    assert Layout("int8", 65, 1, 32).pack_exponents(np.zeros((2, 65), np.int8)).shape == (4, 64)


def test_queries_stand_behind_their_parameters():
    heads, group, dim = 2, 5, 40
    shape = (heads, group)
    number = 10 * np.arange(heads)[:, None] + np.arange(group)
    q8 = np.broadcast_to(number[:, :, None], (*shape, dim)).astype(np.int8)
    query = QuantisedQuery(q8, number + 1000, number % 64, -number, "max", (1,))
    (beats,) = Layout("int8", heads, group, dim).pack_query(query)
    assert beats.shape == (2 * 2 + 2 * 1 * 2 * 4, 64)  # parameters [group][pass]; [group][beat][pass][4 queries]
    # Head 1, second pass, its first slot: query 4.
    assert beats[3, :8].tolist() == [*(1014).to_bytes(2, "little"), 14, 1, *(-14 & 0xFFFFFFFF).to_bytes(4, "little")]
    assert beats[1, 3] == 0  # head 0 takes no part
    assert beats[4 + 0, :dim].tolist() == [0] * dim  # head 0, pass 0, query 0
    assert beats[4 + 3, :dim].tolist() == [3] * dim
    assert beats[4 + 4, :dim].tolist() == [4] * dim  # pass 1
    assert beats[4 + 8 + 4, :dim].tolist() == [14] * dim
    assert not beats[4:, dim:].any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("int5", 1, 1, 64), "unknown key format 'int5': choose one of fp16_int8, fp16_int4, int8, int4"),
        (("int8", 0, 1, 64), "must be at least 1"),
        (("fp16_int8", 1, 1, 257), "head_dim 257 exceeds the 256 that fp16_int8 keys can have"),
        (("int8", 1, 1, 64, True), "two heads of 64 int8 keys do not share a beat"),
        (("fp16_int8", 2, 1, 16, True), "do not share a beat"),
        (("int8", 64, 8, 256), "exceed 256: launch fewer heads at a time"),
        (("int8", 300, 1, 64), "300 groups per row, not 1 to 256"),
    ],
)
def test_a_geometry_that_does_not_fit_is_refused(arguments, message):
    with pytest.raises(DeviceError, match=message):
        Layout(*arguments)


def test_arrays_of_another_shape_or_type_are_refused():
    layout = Layout("int8", 2, 3, 64)
    with pytest.raises(DeviceError, match=r"keys are \[4, 3, 64\], not \[n, 2, 64\]"):
        layout.pack_keys(np.zeros((4, 3, 64), np.int8))
    with pytest.raises(DeviceError, match="int8 keys are int8, not float32"):
        layout.pack_keys(np.zeros((4, 2, 64), np.float32))
    with pytest.raises(DeviceError, match=r"exponents are int8 \[1, 3\]"):
        layout.pack_exponents(np.zeros((1, 3), np.int8))
    none = np.zeros((2, 4), np.int32)
    with pytest.raises(DeviceError, match=r"queries are \[2, 4, 64\], not \[2, 3, 64\]"):
        layout.pack_query(QuantisedQuery(np.zeros((2, 4, 64), np.int8), none, none, none, "max", (0, 1)))
