"""Rows read from a file, many at once: what pread gives, by every engine; what is said of disks that fail."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer import _native
from hillinfer.csd.cold import reading
from hillinfer.csd.cold.files import ColdFile, aligned_buffer
from hillinfer.errors import SettingError

ROWS = 1500
BASE = 4096  # of the region in the file
GAP, LONGEST = 4096, 1 << 16


def _open(engine, depth=64, gap_bytes=GAP, arena_bytes=1 << 20):
    try:
        reader = _native.RowReader(engine, depth, arena_bytes, LONGEST, gap_bytes)
    except ValueError as error:
        pytest.skip(f"this machine has no {engine}: {error}")
    assert reader.engine == engine
    return reader


@pytest.fixture(params=["io_uring", "pool"])
def engine(request):
    return request.param


@pytest.fixture
def reader(engine):
    with contextlib.closing(_open(engine)) as made:
        yield made


class Content:
    """A file of rows that begins a little later than its region, its rows, and their checksums."""

    def __init__(self, folder, row_bytes, direct=True):
        self.file = ColdFile(folder, direct=direct)
        data = aligned_buffer(BASE + ROWS * row_bytes + 4096)
        data[:] = np.random.default_rng(0).integers(0, 256, len(data), np.uint8)
        self.file.write(data[: len(data) // 4096 * 4096], 0)
        self.rows = data[BASE : BASE + ROWS * row_bytes].reshape(ROWS, row_bytes)
        self.sums = _native.checksums(self.rows)

    def on(self, reader, fd=None):
        alignment = self.file.alignment if self.file.direct else 1
        fd = self.file.fd if fd is None else fd
        return _native.RowFile(reader, fd, self.rows.shape[1], alignment)

    def start(self, reader, positions, sums=None):
        """A read, and where its rows will be."""
        positions = np.asarray(positions, np.int64)
        out = np.zeros((len(positions), self.rows.shape[1]), np.uint8)
        return self.on(reader).start(BASE, positions, self.sums if sums is None else sums, out), out


@pytest.fixture(params=[(64, True), (1536, True), (1536, False), (16384, True)], ids=str)
def content(request, tmp_path):
    row_bytes, direct = request.param
    made = Content(tmp_path, row_bytes, direct)
    with contextlib.closing(made.file):
        yield made


@pytest.fixture
def small(tmp_path):
    """Rows of one size, for what does not depend on it."""
    made = Content(tmp_path, 4096)
    with contextlib.closing(made.file):
        yield made


_BATCHES = st.lists(st.sets(st.integers(0, ROWS - 1), max_size=300), min_size=1, max_size=4)


@settings(max_examples=12, deadline=None)
@given(
    batches=_BATCHES,
    depth=st.sampled_from([1, 3, 64]),
    gap=st.sampled_from([0, 4096, 32768]),
    arena=st.sampled_from([LONGEST, 3 * LONGEST, 1 << 22]),
)
def test_any_rows_are_what_pread_gives_whatever_the_order_of_waiting(engine, content, batches, depth, gap, arena):
    with contextlib.closing(_open(engine, depth, gap, arena)) as reader:
        started = [(sorted(batch), *content.start(reader, sorted(batch))) for batch in batches]
        for positions, read, out in reversed(started):
            assert read.requests <= len(positions)
            assert read.finish()
            np.testing.assert_array_equal(out, content.rows[positions])


@settings(max_examples=12, deadline=None)
@given(rows=st.sets(st.integers(0, ROWS - 1), max_size=300), depth=st.sampled_from([2, 64]))
def test_rows_are_told_once_each_and_are_there_when_they_are(engine, content, rows, depth):
    positions = np.array(sorted(rows), np.int64)
    with contextlib.closing(_open(engine, depth)) as reader:
        read, out = content.start(reader, positions)
        told = []
        while len(ranks := read.ready()):
            np.testing.assert_array_equal(out[ranks], content.rows[positions[ranks]])
            told += ranks.tolist()
        assert sorted(told) == list(range(len(positions)))
        assert read.finish()


def test_neighbours_share_a_request_and_long_runs_are_split(reader, content):
    row_bytes = content.rows.shape[1]
    longest = max(1, (LONGEST - 2 * (content.file.alignment if content.file.direct else 1)) // row_bytes)
    for positions, requests in (
        ([3, 4, 5], -(-3 // longest)),
        ([3, 4 + GAP // row_bytes], 1),
        ([3, 5 + GAP // row_bytes], 2),
        (range(ROWS), -(-ROWS // longest)),
    ):
        read, out = content.start(reader, positions)
        assert read.requests == requests
        assert read.finish()
        np.testing.assert_array_equal(out, content.rows[list(positions)])


def test_a_row_that_differs_from_what_was_written_is_named_and_never_told(reader, content):
    wrong = content.sums.copy()
    wrong[[7, 900]] ^= 1
    read, _ = content.start(reader, range(ROWS), wrong)
    told = []
    while len(ranks := read.ready()):
        told += ranks.tolist()
    assert sorted(told) == sorted(set(range(ROWS)) - {7, 900})
    assert not read.finish()
    assert (read.failure, sorted(read.bad)) == (None, [7, 900])


def test_beyond_the_end_and_on_a_file_that_is_gone(reader, small):
    os.ftruncate(small.file.fd, BASE + 1000 * 4096)
    read, _ = small.start(reader, [1400])
    assert not read.finish()
    assert read.failure == (0, 1400, 1400)
    closed = os.dup(small.file.fd)
    os.close(closed)
    out = np.empty((1, 4096), np.uint8)
    read = small.on(reader, closed).start(BASE, np.array([1]), small.sums, out)
    assert not read.finish()
    assert read.failure == (errno.EBADF, 1, 1)
    read, out = small.start(reader, [1])  # and it goes on
    assert read.finish()
    np.testing.assert_array_equal(out[0], small.rows[1])


@pytest.mark.parametrize("result", [-errno.EINTR, -errno.EAGAIN, 512, 4096, 5000])
def test_requests_that_are_interrupted_or_come_back_in_part_go_on(reader, content, result):
    """A part may end anywhere: what is read again begins where the disk can begin."""
    reader.disturb(every=2, result=result)
    positions = np.arange(0, ROWS, 3)
    read, out = content.start(reader, positions)
    assert read.finish()
    np.testing.assert_array_equal(out, content.rows[positions])


@pytest.mark.parametrize("result", [-errno.EIO, 0, -errno.EAGAIN])
def test_a_failing_disk_is_one_error_and_the_rest_of_the_read_is_given_up(engine, small, result):
    with contextlib.closing(_open(engine, depth=4)) as reader:
        reader.disturb(every=1, result=result)
        read, _ = small.start(reader, range(0, ROWS, 3))
        assert len(read.ready()) == 0
        for _ in range(2):
            assert not read.finish()
            assert read.failure[0] == -result
        reader.disturb()
        with pytest.raises(ValueError, match="ascend"):
            small.start(reader, [4, 4])
        with pytest.raises(ValueError, match="checksum"):
            small.start(reader, [ROWS])


def test_a_slow_disk_is_waited_for_and_what_came_is_there_before_the_rest(engine, small):
    with contextlib.closing(_open(engine, depth=8)) as reader:
        reader.disturb(delay=0.003)
        started = time.perf_counter()
        read, out = small.start(reader, range(0, ROWS, 50))  # 30 requests, 8 at a time
        first = read.ready()
        assert 0 < len(first) < 30
        assert read.finish()
        assert time.perf_counter() - started >= 4 * 0.003
        np.testing.assert_array_equal(out, small.rows[::50])


def test_a_read_that_is_given_up_leaves_its_memory_alone(engine, small):
    """In flight or not started: nothing arrives in memory whose owner may have freed it, and others get their rows."""
    with contextlib.closing(_open(engine, depth=8)) as reader:
        reader.disturb(delay=0.005)
        read, out = small.start(reader, range(0, ROWS, 3))
        other, rows = small.start(reader, range(1, 400, 40))
        del read
        gc.collect()
        before = out.copy()
        out[:] = 7
        assert other.finish()
        np.testing.assert_array_equal(rows, small.rows[1:400:40])
        reader.pump()
        assert not before.any()
        assert (out == 7).all()


def test_closing_waits_for_what_is_in_flight_and_ends_the_rest(engine, small):
    reader = _open(engine, depth=4)
    reader.disturb(delay=0.002)
    read, out = small.start(reader, range(0, 300, 30))
    reader.close()
    reader.close()
    assert not read.finish()
    assert read.failure[0] == errno.ECANCELED
    arrived = read.ready()
    assert len(arrived) == 4
    np.testing.assert_array_equal(out[arrived], small.rows[0:300:30][arrived])
    with pytest.raises(RuntimeError, match="closed"):
        small.start(reader, [1])


def test_threads_share_a_reader(reader, small):
    wrong = []

    def use(seed):
        rng = np.random.default_rng(seed)
        for _ in range(30):
            positions = np.unique(rng.integers(0, ROWS, 40))
            read, out = small.start(reader, positions)
            if not (read.finish() and (out == small.rows[positions]).all()):
                wrong.append(positions)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_row_that_no_request_holds_is_refused(reader, small):
    with pytest.raises(ValueError, match="request"):
        _native.RowFile(reader, small.file.fd, LONGEST, 512)
    big = reading.open_reader(1 << 20)  # requests grow with the rows
    _native.RowFile(big, small.file.fd, 1 << 20, 4096)
    big.close()


def test_an_engine_can_be_named_in_the_environment(monkeypatch):
    monkeypatch.setenv("HILLINFER_IO", "pool")
    with contextlib.closing(reading.open_reader(64)) as reader:
        assert reader.engine == "pool"
    monkeypatch.setenv("HILLINFER_IO", "io_urin")
    with pytest.raises(SettingError, match=r"HILLINFER_IO is 'io_urin'.*did you mean 'io_uring'"):
        reading.open_reader(64)
