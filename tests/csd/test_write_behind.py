"""Writing behind the step: never more unwritten than the bound, and a disk that fails is one error for all."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time

import numpy as np
import pytest

from hillinfer.csd.cold.write_behind import WriteBehind
from hillinfer.csd.contract import Stream
from hillinfer.errors import ColdPoolError, ColdPoolFull
from tests.csd.conftest import GEOMETRY

A = Stream(0, 0)
BOUND = 1 << 16
PIECE = np.ones(1 << 14, np.uint8)


class SlowFile:
    """A disk that takes as long as it is told to."""

    def __init__(self, failure=None):
        self.go_on, self.written, self.failure = threading.Event(), 0, failure

    def write(self, data, _offset):
        assert self.go_on.wait(30)
        if self.failure is not None:
            raise self.failure
        self.written += len(data)


def _in_a_thread(call):
    """Runs a call; what it raised, once it is over."""
    outcome = []

    def run():
        try:
            call()
            outcome.append(None)
        except Exception as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()

    def ended(seconds=30):
        thread.join(seconds)
        assert not thread.is_alive()
        return outcome[0]

    ended.thread = thread
    return ended


@pytest.fixture
def writer():
    with contextlib.closing(WriteBehind(BOUND)) as made:
        yield made


def test_appending_waits_when_the_bound_is_reached(writer):
    file = SlowFile()
    for _ in range(BOUND // len(PIECE)):
        writer.write(file, PIECE, 0)
    assert writer.unwritten == BOUND
    further = _in_a_thread(lambda: writer.write(file, np.ones(3 * BOUND, np.uint8), 0))
    further.thread.join(0.05)
    assert further.thread.is_alive()
    assert writer.unwritten == BOUND
    file.go_on.set()
    assert further() is None
    writer.drain()
    assert (writer.unwritten, file.written) == (0, 4 * BOUND)


def test_whoever_waits_when_the_disk_fails_is_told_and_so_are_all_after(writer):
    file = SlowFile(ColdPoolFull("no room"))
    for _ in range(BOUND // len(PIECE)):
        writer.write(file, PIECE, 0)
    waiting = [_in_a_thread(lambda: writer.write(file, PIECE, 0)), _in_a_thread(writer.drain)]
    file.go_on.set()
    for call in [*(each() for each in waiting), _in_a_thread(writer.drain)()]:
        assert call is file.failure
    with pytest.raises(ColdPoolFull, match="no room"):
        writer.write(file, PIECE, 0)
    assert file.written == 0  # nothing was written behind the gap


def test_closing_lets_nobody_wait(writer):
    file = SlowFile()
    for _ in range(BOUND // len(PIECE)):
        writer.write(file, PIECE, 0)
    waiting = _in_a_thread(lambda: writer.write(file, PIECE, 0))
    closing = _in_a_thread(writer.close)
    assert isinstance(waiting(), ColdPoolError)
    file.go_on.set()  # what is being written is waited for
    assert closing() is None


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [(errno.ENOSPC, ColdPoolFull, "is full.*--cold-dir"), (errno.EIO, ColdPoolError, "Input/output error")],
)
def test_a_disk_that_fails_midway_stops_a_run_with_one_error(filled, monkeypatch, number, kind, message):
    """The device, its real files, and a kernel that refuses from the tenth write on."""
    real, writes = os.pwritev, []

    def failing(*args):
        writes.append(args)
        if len(writes) > 10:
            raise OSError(number, os.strerror(number))
        return real(*args)

    monkeypatch.setattr(os, "pwritev", failing)

    def run():
        for i in range(20_000):  # until the writing threads have had their turns
            filled.append(A, 64, seed=i % 200)
            time.sleep(0.001)  # a step

    with pytest.raises(kind, match=message):
        run()
    out = np.empty((1, GEOMETRY.row_bytes), np.uint8)
    for call in (filled.device.flush, lambda: filled.device.read(A, np.array([0]), out)):
        with pytest.raises(kind, match=message):
            call()
    assert len(writes) <= 20  # nobody goes on writing


def test_rows_that_are_written_do_not_wait_for_those_that_are_not(filled):
    filled.append(A, 128)
    filled.device.flush()
    log, held = filled.device.rows.logs[0], threading.Event()
    real = log.file.write
    log.file.write = lambda *args: (held.wait(30), real(*args))
    filled.append(A, 64, seed=1)
    out = np.empty((2, GEOMETRY.row_bytes), np.uint8)
    filled.device.read(A, np.array([3, 127]), out).wait()  # while the write of 128… hangs
    np.testing.assert_array_equal(out, filled.rows[A][[3, 127]])
    fresh = _in_a_thread(lambda: filled.device.read(A, np.array([3, 128]), out).wait())
    fresh.thread.join(0.05)
    assert fresh.thread.is_alive()
    held.set()
    assert fresh() is None
    np.testing.assert_array_equal(out, filled.rows[A][[3, 128]])
