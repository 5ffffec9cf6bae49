"""Reads of many requests, which a thread of the reader's own looks after: nothing of them differs."""

from __future__ import annotations

import os

import numpy as np
import pytest

from hillinfer import _native

ROW = 512
ROWS = 3000


@pytest.fixture(params=["io_uring", "pool"])
def reader(request):
    try:
        made = _native.RowReader(request.param, 64, 64 * 4096, 4096, 0)
    except ValueError as refused:
        pytest.skip(str(refused))
    yield made
    made.close()


@pytest.fixture
def rows(tmp_path):
    written = np.random.default_rng(0).integers(0, 256, (ROWS, ROW), np.uint8)
    path = tmp_path / "rows"
    path.write_bytes(written.tobytes())
    number = os.open(path, os.O_RDONLY)
    yield written, number
    os.close(number)


def _start(reader, rows, every=2):
    """A read of more requests than are in flight: no two of its rows are neighbours."""
    written, number = rows
    positions = np.arange(0, ROWS, every)
    file = _native.RowFile(reader, number, ROW, 1)
    out = np.zeros((len(positions), ROW), np.uint8)
    return file.start(0, positions, _native.checksums(written), out), written[positions], out


@pytest.mark.parametrize("way", ["wait", "ready", "late"])
def test_all_rows_arrive(reader, rows, way):
    for _ in range(5):
        reading, expected, out = _start(reader, rows)
        if way == "ready":
            ranks = []
            while len(found := reading.ready()):
                ranks += found.tolist()
            assert sorted(ranks) == list(range(len(expected)))
        if way == "late":
            while not np.array_equal(out, expected):  # nobody asks: it comes by itself
                pass
        assert reading.finish()
        np.testing.assert_array_equal(out, expected)


def test_long_and_short_ones_go_on_together(reader, rows):
    going = [_start(reader, rows, every) for every in (2, 500, 3, 700, 2)]
    for reading, expected, out in reversed(going):
        assert reading.finish()
        np.testing.assert_array_equal(out, expected)


def test_one_that_is_given_up_leaves_the_others(reader, rows):
    reader.disturb(0.001, 0, 0)
    first = _start(reader, rows)
    reading, expected, out = _start(reader, rows, 3)
    del first
    assert reading.finish()
    np.testing.assert_array_equal(out, expected)


def test_a_failure_is_met_by_whoever_waits(reader, rows):
    reader.disturb(0, 40, -5)
    reading, _, _ = _start(reader, rows)
    assert not reading.finish()
    assert reading.failure[0] == 5


def test_closing_waits_for_what_is_in_flight(reader, rows):
    reader.disturb(0.002, 0, 0)
    reading, _, _ = _start(reader, rows)
    reader.close()
    assert not reading.finish()
