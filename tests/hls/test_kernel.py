"""The kernel in C simulation against the NumPy model, byte for byte."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.csd.abi import Layout, aligned
from hillinfer.kv.query import QuantisedQuery
from tb import qk_model
from tests.hls.cases import FORMATS, Case, random_case, random_query

DIMS = (16, 32, 64, 80, 96, 128, 256)


@pytest.mark.parametrize("group", range(1, 9))
@pytest.mark.parametrize("reduce", ["max", "sum"])
@pytest.mark.parametrize("keys", FORMATS)
def test_every_format_reduction_group_and_dimension(library, keys, reduce, group):
    for dim in DIMS:
        heads = 1 + (group + dim) % 4
        case = random_case(dim + group, keys, heads, group, dim, 150, reduce=reduce)
        assert case.run(library) == case.expected(), (dim, heads)


@pytest.mark.parametrize("heads", [1, 2, 3, 8])
@pytest.mark.parametrize("group", range(1, 9))
@pytest.mark.parametrize(("keys", "dim"), [("int8", 32), ("int4", 64), ("int4", 32), ("int4", 40)])
def test_two_heads_share_a_beat(library, keys, dim, group, heads):
    for reduce in ("max", "sum"):
        case = random_case(heads, keys, heads, group, dim, 130, pair=True, reduce=reduce)
        assert case.launch.key_beats == 130 * -(-heads // 2)
        assert case.run(library) == case.expected()


@pytest.mark.parametrize(
    ("keys", "heads", "group", "dim", "pair"),
    [
        ("fp16_int8", 256, 8, 32, False),
        ("fp16_int4", 256, 2, 32, False),
        ("fp16_int8", 32, 8, 256, False),
        ("int8", 256, 4, 64, False),
        ("int8", 128, 8, 64, False),
        ("int8", 32, 4, 512, False),
        ("int4", 256, 4, 128, False),
        ("int4", 256, 8, 64, True),
        ("int4", 16, 8, 1024, False),
    ],
)
def test_the_longest_rows(library, keys, heads, group, dim, pair):
    for reduce in ("max", "sum"):
        case = random_case(1, keys, heads, group, dim, 70, pair=pair, reduce=reduce, wild=True)
        assert case.run(library) == case.expected()


@pytest.mark.parametrize("min_score", [-32768, 0, 300, 32767])
@pytest.mark.parametrize("tokens", [0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 3000])
@pytest.mark.parametrize("keys", FORMATS)
def test_every_number_of_tokens_and_every_filter(library, keys, tokens, min_score):
    case = random_case(tokens, keys, 2, 3, 64, tokens, min_score=min_score)
    assert case.run(library) == case.expected()


@settings(max_examples=150, deadline=None)
@given(
    keys=st.sampled_from(FORMATS),
    heads=st.integers(1, 9),
    group=st.integers(1, 8),
    dim=st.integers(1, 256),
    tokens=st.integers(0, 1100),
    reduce=st.sampled_from(["max", "sum"]),
    min_score=st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(-32768, 32767),
    first=st.integers(-(1 << 31), (1 << 31) - 1),
    tag=st.integers(-(1 << 31), (1 << 31) - 1),
    seed=st.integers(0, 1 << 32),
    data=st.data(),
)
def test_any_legal_launch(library, keys, heads, group, dim, tokens, reduce, min_score, first, tag, seed, data):
    pair = data.draw(st.booleans()) if 2 * dim <= {"int8": 64, "int4": 128}.get(keys, 0) else False
    case = random_case(seed, keys, heads, group, dim, tokens, pair=pair, reduce=reduce, wild=True)
    if dim == 256:  # 24 bits hold all sums but that of -128 times -128 throughout (docs/kernel.md)
        np.maximum(case.query.q8, -127, out=case.query.q8)
    enabled = data.draw(st.sets(st.integers(0, heads - 1), min_size=0))
    q = case.query
    query = QuantisedQuery(q.q8, q.m, q.r, q.o, reduce, tuple(sorted(enabled)))
    case = Case(case.layout, case.keys, case.exponents, query, min_score, first, tag)
    assert case.run(library, exact_depth=seed % 2 == 0) == case.expected()


@pytest.mark.parametrize("keys", ["fp16_int8", "fp16_int4"])
def test_every_fp16_pattern_at_every_exponent(library, keys):
    """One pattern stands alone in each token, and the scales make its cast the score."""
    patterns = np.arange(1 << 16).astype(np.uint16)
    tokens = np.zeros((1 << 16, 1, 32), np.uint16)
    tokens[patterns, 0, patterns % 32] = patterns
    limit = qk_model.INT8_LIMIT if keys == "fp16_int8" else qk_model.INT4_LIMIT
    ones, zeros = np.ones((1, 1), np.int32), np.zeros((1, 1), np.int32)
    for exponent in range(-16, 16):
        query = QuantisedQuery(np.ones((1, 1, 32), np.int8), ones << 15, ones * (15 - exponent), zeros, "max", (0,))
        exponents = np.full((1 << 10, 1), exponent, np.int8)
        case = Case(Layout(keys, 1, 1, 32), tokens, exponents, query)
        scores = qk_model.cast_fp16(patterns, exponent, limit).astype(np.int16)
        assert case.run(library) == qk_model.score_blocks(scores, case.first, case.tag, case.min_score), exponent


@pytest.mark.parametrize(("keys", "heads", "pair"), [("fp16_int8", 1, False), ("int4", 2, True)])
def test_a_launch_of_as_many_tokens_as_there_may_be(library, keys, heads, pair):
    case = random_case(3, keys, heads, 2, 32, 1 << 20, pair=pair, min_score=700)
    assert case.run(library) == case.expected()


@pytest.mark.parametrize("keys", FORMATS)
def test_not_one_byte_is_read_or_written_outside_the_buffers(library, keys):
    """Each buffer of the kernel ends where memory ends: one byte more would end this process."""
    case = random_case(5, keys, 3, 3, 64, 1100, reduce="sum")
    (query,) = case.layout.pack_query(case.query)
    inputs = [query, case.layout.pack_keys(case.keys), case.layout.pack_exponents(case.exponents)]
    expected = case.expected()
    walls = [_before_a_wall(beats.reshape(-1)) for beats in inputs]
    blocks = _before_a_wall(np.full(len(expected), 0xEE, np.uint8))
    library.run(*(address for address, _ in (*walls, blocks)), case.launch.scalars)
    assert blocks[1][-len(expected) :].tobytes() == expected
    assert not np.any(blocks[1][: -len(expected)])


_libc = ctypes.CDLL(None, use_errno=True)


def _before_a_wall(content):
    """The address of a copy of bytes, whose last byte is followed by memory that may not be touched."""
    page = mmap.PAGESIZE
    size = -(-content.size // page) * page
    memory = mmap.mmap(-1, size + page)
    whole = np.frombuffer(memory, np.uint8)
    address = whole.ctypes.data
    whole[size - content.size : size] = content
    assert _libc.mprotect(ctypes.c_void_p(address + size), page, 0) == 0
    return address + size - content.size, whole[:size]


def test_guard_bytes_round_the_blocks_stay(library):
    case = random_case(6, "int8", 2, 4, 64, 1500)
    (query,) = case.layout.pack_query(case.query)
    keys, exps = case.layout.pack_keys(case.keys), case.layout.pack_exponents(case.exponents)
    expected = case.expected()
    memory = aligned(len(expected) // 64 + 2)
    memory[:] = 0xEE
    library.run(query.ctypes.data, keys.ctypes.data, exps.ctypes.data, memory.ctypes.data + 64, case.launch.scalars)
    assert memory.tobytes() == b"\xee" * 64 + expected + b"\xee" * 64


def test_slots_behind_the_queries_count_for_nothing_whatever_their_flags_say(library):
    """One query is two slots of banks; the parameters of the other six are enabled junk."""
    for keys in FORMATS:
        case = random_case(7, keys, 2, 1, 32, 100)
        (query,) = case.layout.pack_query(case.query)
        slots = query[:2].reshape(2, 8, 8)
        in_use = 2 if keys.startswith("fp16") else 1
        slots[:, in_use:] = np.random.default_rng(0).integers(0, 256, (2, 8 - in_use, 8))
        slots[:, in_use:, 3] = 1
        keys_and_exponents = case.layout.pack_keys(case.keys), case.layout.pack_exponents(case.exponents)
        assert library.score(query, *keys_and_exponents, case.launch).tobytes() == case.expected()


def test_more_than_8_queries_take_several_launches(library):
    layout, rng = Layout("int8", 2, 20, 64), np.random.default_rng(8)
    assert layout.launches == 3
    query = random_query(rng, 2, 20, 64, "max")
    keys = rng.integers(-127, 128, (200, 2, 64)).astype(np.int8)
    exponents = rng.integers(-3, 6, (4, 2)).astype(np.int8)
    case = Case(layout, keys, exponents, query)
    merged = np.full(200, -32768, np.int16)
    for part in layout.pack_query(query):
        slots = library.score(part, layout.pack_keys(keys), layout.pack_exponents(exponents), case.launch)
        (block,) = qk_model.parse_blocks(slots.tobytes())
        merged = np.maximum(merged, block.scores)
    np.testing.assert_array_equal(merged, case.scores())
