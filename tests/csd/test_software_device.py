"""The software device against the driver contract: scores to the bit, rows as written, errors that say what to do."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.csd.contract import Run, Stream
from hillinfer.errors import CorruptRecordError, DeviceError
from hillinfer.kv.keys import ScoringKeys
from tb import qk_model
from tests.csd.conftest import GEOMETRY, open_software, some_query

A, B = Stream(0, 0), Stream(1, 2)


def _expected(keys, query, first, tokens):
    enabled = np.zeros(query.m.shape, bool)
    enabled[list(query.heads)] = True
    part = slice(first, first + tokens)
    tiles = slice(first // 64, (first + tokens) // 64)
    return qk_model.scores(
        query.q8, keys.integers[part], keys.exponents[tiles], query.m, query.r, query.o, enabled, query.reduce
    )


@pytest.mark.parametrize("reduce", ["max", "sum"])
@pytest.mark.parametrize("heads", [(0, 1), (1,)])
def test_scores_stream_back_block_by_block(filled, reduce, heads):
    filled.append(A, 64 * 40)
    filled.append(B, 64 * 3, seed=1)
    query = some_query(reduce=reduce)
    query = type(query)(query.q8, query.m, query.r, query.o, reduce, heads)
    runs = [Run(0, 64), Run(128, 2048 + 64), Run(64 * 39, 64)]
    ticket = filled.device.submit(A, query, runs)
    other = filled.device.submit(B, query, [Run(64, 128)])
    blocks = list(ticket)
    assert [block.first for block in blocks] == [0, 128, 1152, 2176, 64 * 39]
    assert [(block.index, block.of) for block in blocks] == [(0, 1), (0, 3), (1, 3), (2, 3), (0, 1)]
    for block in [*blocks, *other]:
        stream = B if block.scanned == 128 else A
        expected = _expected(filled.keys[stream], query, block.first, block.scanned)
        np.testing.assert_array_equal(block.scores, expected)
        np.testing.assert_array_equal(block.positions, np.arange(block.first, block.first + block.scanned))
    assert filled.device.counters.launches == 4


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**31), share=st.floats(0, 1), tokens=st.sampled_from([64, 640, 4096]))
def test_rows_come_back_as_written(filled, seed, share, tokens):
    rng = np.random.default_rng(seed)
    stream = Stream(int(rng.integers(2)), int(rng.integers(4)))
    filled.append(stream, tokens, seed=seed % 1000)
    held = filled.rows[stream]
    positions = np.flatnonzero(rng.random(len(held)) < share)
    out = np.empty((len(positions), GEOMETRY.row_bytes), np.uint8)
    filled.device.read(stream, positions, out).wait()
    np.testing.assert_array_equal(out, held[positions])


def test_reads_and_scores_overlap_and_repeat(filled):
    filled.append(A, 64 * 20)
    query = some_query()
    tickets = [filled.device.submit(A, query, [Run(0, 64 * 20)]) for _ in range(20)]
    outs = [np.empty((640, GEOMETRY.row_bytes), np.uint8) for _ in range(20)]
    reads = [filled.device.read(A, np.arange(0, 1280, 2), out) for out in outs]
    expected = _expected(filled.keys[A], query, 0, 64 * 20)
    for ticket, read, out in zip(tickets, reads, outs, strict=True):
        np.testing.assert_array_equal(np.concatenate([block.scores for block in ticket]), expected)
        read.wait()
        np.testing.assert_array_equal(out, filled.rows[A][::2])


def test_a_cancelled_launch_ends_early(filled):
    filled.append(A, 64 * 64)
    tickets = [filled.device.submit(A, some_query(), [Run(0, 64 * 64)]) for _ in range(50)]
    for ticket in tickets[1:]:
        ticket.cancel()
    assert len(list(tickets[0])) == 4
    assert list(tickets[-1]) == []
    after = list(filled.device.submit(A, some_query(), [Run(0, 64)]))
    assert len(after) == 1


def _flip(fd, offset):
    path = f"/proc/self/fd/{fd}"
    with open(path, "r+b", buffering=0) as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x10]))


def test_a_flipped_bit_in_the_log_is_an_error_that_names_it(filled):
    filled.append(A, 64 * 4)
    filled.append(Stream(1, 0), 64 * 4)
    filled.device.flush()
    _flip(filled.device.rows.logs[1].file.fd, 200 * GEOMETRY.row_bytes + 17)
    out = np.empty((256, GEOMETRY.row_bytes), np.uint8)
    whole = filled.device.read(A, np.arange(256), out)
    spoilt = filled.device.read(Stream(1, 0), np.arange(256), np.empty_like(out))
    for _ in range(2):  # whoever waits twice hears the same
        whole.wait()
        with pytest.raises(CorruptRecordError, match="layer 1, sequence 0, token 200: its checksum"):
            spoilt.wait()
    filled.device.read(Stream(1, 0), np.arange(200), out[:200]).wait()  # the rest is still good


def test_a_log_that_was_cut_short_is_an_error(filled):
    filled.append(A, 64 * 4)
    filled.device.flush()
    os.ftruncate(filled.device.rows.logs[0].file.fd, 100 * GEOMETRY.row_bytes // 4096 * 4096)
    with pytest.raises(CorruptRecordError, match="shorter"):
        filled.device.read(A, np.arange(256), np.empty((256, GEOMETRY.row_bytes), np.uint8)).wait()


@pytest.mark.parametrize("run", [Run(1, 64), Run(0, 63), Run(0, 0), Run(64, 128), Run(128, 64)])
def test_launches_outside_the_log_are_refused(filled, run):
    filled.append(A, 128)
    with pytest.raises(DeviceError, match="no whole tiles"):
        filled.device.submit(A, some_query(), [run])


def test_tokens_out_of_order_are_refused(filled):
    filled.append(A, 128)
    rows, keys = filled.rows[A][:64], filled.keys[A]
    for first in (0, 64, 192):
        with pytest.raises(DeviceError, match="not the next whole tiles"):
            filled.device.append(A, first, rows, keys)


def test_more_tokens_than_it_was_opened_for_are_refused(tmp_path, filled):
    filled.append(A, 128)
    small = open_software(tmp_path, region_tokens=64)
    keys = filled.keys[A]
    first = ScoringKeys(keys.integers[:64], keys.exponents[:1])
    second = ScoringKeys(keys.integers[64:], keys.exponents[1:])
    small.append(A, 0, filled.rows[A][:64], first)
    with pytest.raises(DeviceError, match="at most 64 tokens"):
        small.append(A, 64, filled.rows[A][64:], second)
    small.close()


def test_a_closed_device_says_so_and_may_be_closed_again(tmp_path):
    device = open_software(tmp_path)
    device.close()
    device.close()
    with pytest.raises(DeviceError, match="closed"):
        device.submit(A, some_query(), [])
