"""Rows: what was appended is what is read, at once, of every stream, while scores are under way."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.csd.contract import Run, Stream
from tests.conformance.held import random_query, random_tokens


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), pieces=st.lists(st.sampled_from([64, 192, 640]), min_size=1, max_size=4))
def test_streams_grow_side_by_side_and_stay_apart(held, seed, pieces):
    rng = np.random.default_rng(seed)
    streams = [held.fresh(layer=layer) for layer in (0, 1, 0)]
    for piece, tokens in enumerate(pieces):
        for stream in streams:
            held.append(stream, tokens, seed=seed + piece)
        stream = streams[int(rng.integers(3))]  # visible at once, written yet or not
        whole = Run(0, len(held.rows[stream]))
        query = random_query(rng, held.geometry)
        ticket = held.device.submit(stream, query, [whole])
        positions = np.flatnonzero(rng.random(whole.tokens) < rng.random())
        out = np.empty((len(positions), held.geometry.row_bytes), np.uint8)
        held.device.read(stream, positions, out).wait()
        np.testing.assert_array_equal(out, held.rows[stream][positions])
        held.check(stream, query, [whole], list(ticket))


def test_reads_and_scores_overlap(held):
    stream = held.fresh(64 * 20)
    query = random_query(np.random.default_rng(0), held.geometry)
    tickets = [held.device.submit(stream, query, [Run(0, 64 * 20)]) for _ in range(8)]
    outs = [np.empty((640, held.geometry.row_bytes), np.uint8) for _ in range(8)]
    reads = [held.device.read(stream, np.arange(0, 1280, 2), out) for out in outs]
    for ticket, read, out in zip(tickets, reads, outs, strict=True):
        held.check(stream, query, [Run(0, 64 * 20)], list(ticket))
        read.wait()
        np.testing.assert_array_equal(out, held.rows[stream][::2])


def test_appended_arrays_may_be_used_again(held):
    stream = held.fresh()
    rng = np.random.default_rng(1)
    rows, keys = random_tokens(rng, held.geometry, 128)
    held.rows[stream], held.keys[stream] = rows.copy(), type(keys)(keys.integers.copy(), keys.exponents.copy())
    held.device.append(stream, 0, rows, keys)
    for array in (rows, keys.integers, keys.exponents):
        array[:] = 1
    query, out = random_query(rng, held.geometry), np.empty_like(rows)
    held.check(stream, query, [Run(0, 128)], list(held.device.submit(stream, query, [Run(0, 128)])))
    held.device.read(stream, np.arange(128), out).wait()
    np.testing.assert_array_equal(out, held.rows[stream])


def test_flushed_rows_are_still_there(held):
    stream = held.fresh(192, layer=1)
    held.device.flush()
    out = np.empty((3, held.geometry.row_bytes), np.uint8)
    held.device.read(stream, np.array([0, 100, 191]), out).wait()
    np.testing.assert_array_equal(out, held.rows[stream][[0, 100, 191]])


def test_the_same_sequence_of_two_layers_is_two_streams(held):
    first = held.fresh(64)
    second = Stream(1, first.sequence)
    held.append(second, 128, seed=9)
    query = random_query(np.random.default_rng(2), held.geometry)
    for stream, tokens in ((first, 64), (second, 128)):
        held.check(stream, query, [Run(0, tokens)], list(held.device.submit(stream, query, [Run(0, tokens)])))
