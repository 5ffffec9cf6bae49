"""Rows read from a file, many at once, by the kernel and by threads: what they are, and what is said when they fail."""

from __future__ import annotations

import contextlib
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hillinfer import _native
from hillinfer.csd.cold.files import ColdFile, aligned_buffer

ROWS = 1500


@pytest.fixture(params=["kernel", "threads"])
def reader(request):
    with contextlib.closing(_native.RowReader(use_kernel=request.param == "kernel")) as made:
        assert made.in_kernel == (request.param == "kernel")
        yield made


@pytest.fixture(params=[64, 1536, 16384])
def file(request, tmp_path):
    """A file of rows that begins a little later than its region, its rows, and their checksums."""
    row_bytes = request.param
    with contextlib.closing(ColdFile(tmp_path, direct=True)) as file:
        content = aligned_buffer(4096 + ROWS * row_bytes + 4096)
        content[:] = np.random.default_rng(0).integers(0, 256, len(content), np.uint8)
        file.write(content[: len(content) // 4096 * 4096], 0)
        rows = content[4096 : 4096 + ROWS * row_bytes].reshape(ROWS, row_bytes)
        yield file, rows, _native.checksums(rows)


def _start(reader, file, row_bytes, positions):
    return reader.start(file.fd, 4096, row_bytes, file.alignment, file.direct, positions)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.sets(st.integers(0, ROWS - 1), max_size=700), min_size=1, max_size=4))
def test_rows_come_back_whatever_the_order_of_waiting(reader, file, batches):
    cold, rows, sums = file
    started = []
    for batch in batches:
        positions = np.array(sorted(batch), np.int64)
        reading = _start(reader, cold, rows.shape[1], positions)
        assert reading.requests <= len(positions)
        started.append((positions, reading))
    for positions, reading in reversed(started):
        out = np.empty((len(positions), rows.shape[1]), np.uint8)
        assert reader.finish(reading, out, sums) == ("", [])
        np.testing.assert_array_equal(out, rows[positions])


def test_neighbours_share_a_request_and_long_runs_are_split(reader, file):
    cold, rows, sums = file
    row_bytes = rows.shape[1]
    for positions, requests in (
        (np.array([3, 4, 5]), 1),
        (np.array([3, 4 + 4096 // row_bytes]), 1),
        (np.array([3, 5 + 4096 // row_bytes]), 2),
        (np.arange(ROWS), -(-ROWS // max(1, (1 << 19) // row_bytes))),
    ):
        reading = _start(reader, cold, row_bytes, positions)
        assert reading.requests == requests
        assert reader.finish(reading, np.empty((len(positions), row_bytes), np.uint8), sums) == ("", [])


def test_a_row_that_differs_from_what_was_written_is_named(reader, file):
    cold, rows, sums = file
    wrong = sums.copy()
    wrong[[7, 900]] ^= 1
    positions = np.arange(0, ROWS, 1)
    out = np.empty((ROWS, rows.shape[1]), np.uint8)
    assert reader.finish(_start(reader, cold, rows.shape[1], positions), out, wrong) == ("", [7, 900])


def test_beyond_the_end_and_on_a_file_that_is_gone(reader, file):
    cold, rows, sums = file
    row_bytes = rows.shape[1]
    os.ftruncate(cold.fd, 4096 + 1000 * row_bytes // 4096 * 4096)
    out = np.empty((1, row_bytes), np.uint8)
    failure, _ = reader.finish(_start(reader, cold, row_bytes, np.array([1400])), out, sums)
    assert failure == "the file is shorter than what was written of tokens 1400-1400"
    closed = os.dup(cold.fd)
    os.close(closed)
    reading = reader.start(closed, 4096, row_bytes, cold.alignment, cold.direct, np.array([1]))
    assert reader.finish(reading, out, sums)[0] == "Bad file descriptor of tokens 1-1"
    assert reader.finish(_start(reader, cold, row_bytes, np.array([1])), out, sums) == ("", [])  # and it goes on
    np.testing.assert_array_equal(out[0], rows[1])


@given(st.binary(max_size=300))
def test_crc32c_is_the_standard_one(data):
    assert _native.crc32c(b"123456789") == 0xE3069283  # RFC 3720's check value
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    assert _native.crc32c(data) == crc ^ 0xFFFFFFFF


@given(st.binary(min_size=64, max_size=256), st.integers(0, 255), st.integers(0, 7))
def test_every_flipped_bit_changes_a_checksum(data, byte, bit):
    row = np.frombuffer(data, np.uint8)[None].copy()
    before = _native.checksums(row)
    row[0, byte % row.shape[1]] ^= 1 << bit
    assert _native.checksums(row) != before
