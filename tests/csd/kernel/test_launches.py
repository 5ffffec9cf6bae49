"""The queue of launches: full queues wait, what fails is the ticket's, and no stale block passes for a new one."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from hillinfer.csd.boards.native import NativeBoard
from hillinfer.csd.contract import Run, Stream
from hillinfer.errors import DeviceError
from tests.csd.kernel.twins import Failing, Twins, open_kernel

A = Stream(1, 0)
WHOLE = Run(0, 64 * 64)


class Watched(NativeBoard):
    """Counts what is queued; writes down tags."""

    def __init__(self, **given):
        super().__init__(**given)
        self.tags, self.queued, self.most = [], 0, 0

    def start(self, query, keys, exps, blocks, scalars):
        self.tags.append(scalars[-1])
        self.queued += 1
        self.most = max(self.most, self.queued)
        running = super().start(query, keys, exps, blocks, scalars)
        wait, board = running.wait, self

        def waited():
            wait()
            board.queued -= 1

        running.wait = waited
        return running


@contextlib.contextmanager
def filled(folder, board, **given):
    with contextlib.closing(Twins(folder, open_kernel(folder, board, **given))) as twins:
        twins.append(A, WHOLE.tokens)
        yield twins


@pytest.mark.parametrize("keys", ["resident", "stream"])
@pytest.mark.parametrize("depth", [1, 3])
def test_a_full_queue_waits_and_never_fails(tmp_path, keys, depth):
    board = Watched(depth=depth, p2p=True)
    with filled(tmp_path, board, keys=keys) as twins:
        queries = [twins.query(seed) for seed in range(12)]
        tickets = [twins.device.submit(A, query, [WHOLE]) for query in queries]
        for ticket, query in reversed(list(zip(tickets, queries, strict=True))):
            scores, due = np.empty(WHOLE.tokens, np.int16), np.empty(WHOLE.tokens, np.int16)
            ticket.merge_into(scores)
            twins.software.submit(A, query, [WHOLE]).merge_into(due)
            np.testing.assert_array_equal(scores, due)
    assert 1 <= board.most <= depth
    assert len(board.tags) == len(set(board.tags)) >= 12 * 2
    assert twins.device.counters.launches == len(board.tags)


def test_blocks_are_there_before_the_last_launch_has_begun(tmp_path):
    board = Watched(depth=2)
    with filled(tmp_path, board) as twins:
        ticket = twins.device.submit(A, twins.query(), [WHOLE])
        next(iter(ticket))
        assert len(board.tags) < 4
        ticket.cancel()


def test_a_launch_that_fails_is_its_tickets_failure_alone(tmp_path):
    class Once(NativeBoard):
        count = 0

        def run(self, *arguments):
            self.count += 1
            if self.count == 6:
                raise DeviceError("ECC error at bank0")
            super().run(*arguments)

    with filled(tmp_path, Once()) as twins:
        query = twins.query()
        good, bad, later = (twins.device.submit(A, query, [WHOLE]) for _ in range(3))
        due = twins.expected(A, query, [WHOLE])
        for _ in range(2):  # it stays failed
            with pytest.raises(DeviceError, match="ECC error at bank0"):
                list(bad)
        for ticket in (good, later):
            for block, expected in zip(ticket, due, strict=True):
                np.testing.assert_array_equal(block.scores, expected.scores)


def test_memory_that_a_failed_launch_may_still_write_is_never_used_again(tmp_path):
    class Hung(NativeBoard):
        def __init__(self):
            super().__init__()
            self.used = []

        def run(self, query, keys, exps, blocks, scalars):
            self.used.append({id(part.buffer) for part in (query, exps, blocks)})
            if len(self.used) == 1:
                raise DeviceError("timed out")
            super().run(query, keys, exps, blocks, scalars)

    board = Hung()
    with filled(tmp_path, board) as twins:
        with pytest.raises(DeviceError, match="timed out"):
            list(twins.device.submit(A, twins.query(), [Run(0, 64)]))
        for _ in range(3):
            twins.check(A, twins.query(), [Run(0, 64)])
    first, *later = board.used
    assert len(later) == 3
    assert not first & set().union(*later)


def test_a_board_that_is_lost_fails_every_submission_and_closes(tmp_path):
    board = Failing(3, memory_bytes=1 << 24)
    with filled(tmp_path, board) as twins:
        tickets = [twins.device.submit(A, twins.query(), [WHOLE]) for _ in range(5)]
        for ticket in tickets:
            with pytest.raises(DeviceError, match="fell off the bus"):
                ticket.merge_into(np.empty(WHOLE.tokens, np.int16))
        twins.device.close()
    assert board.taken == 0


def test_a_board_that_refuses_a_launch(tmp_path):
    class Refusing(NativeBoard):
        def start(self, query, keys, exps, blocks, scalars):
            if scalars[1] == 2048:
                raise DeviceError("no execution slot")
            return super().start(query, keys, exps, blocks, scalars)

    with filled(tmp_path, Refusing()) as twins:
        ticket = twins.device.submit(A, twins.query(), [WHOLE])
        with pytest.raises(DeviceError, match="no execution slot"):
            list(ticket)
        twins.check(A, twins.query(), [Run(0, 1024)])


@pytest.mark.parametrize(
    ("word", "value", "message"),
    [
        (1024 + 1, 1, "of another launch"),
        (1024 + 15, 0, "torn"),
        (1024 + 2, 64, "was due"),
        (1024 + 4, 1000, "left out|not ascending"),
        (5, 0x00070009, "not ascending"),
        (1024 + 9, 1, "mean nothing"),
    ],
)
def test_a_block_that_is_not_whole_is_never_merged(tmp_path, word, value, message):
    class Torn(NativeBoard):
        def run(self, query, keys, exps, blocks, scalars):
            super().run(query, keys, exps, blocks, scalars)
            if scalars[1] == 1024:
                start = blocks.offset
                blocks.buffer.memory[start : start + 4160].view(np.uint32)[word] = value

    with filled(tmp_path, Torn()) as twins:
        with pytest.raises(DeviceError, match=message):
            list(twins.device.submit(A, twins.query(), [WHOLE]))
        twins.check(A, twins.query(), [Run(0, 1024)])


def test_a_kernel_that_writes_nothing_is_noticed(tmp_path):
    """Its buffers hold the blocks of an earlier launch over the same tokens: only the tag tells."""

    class Lazy(NativeBoard):
        lazy = False

        def run(self, *arguments):
            if not self.lazy:
                super().run(*arguments)

    board = Lazy()
    with filled(tmp_path, board) as twins:
        twins.check(A, twins.query(), [Run(0, 1024)])
        board.lazy = True
        with pytest.raises(DeviceError, match="of another launch"):
            list(twins.device.submit(A, twins.query(), [Run(0, 1024)]))


def test_every_part_begins_at_a_page(tmp_path):
    """The native board refuses others; runs that begin at any tile must do."""
    with filled(tmp_path, NativeBoard()) as twins:
        for first in range(0, 640, 64):
            twins.check(A, twins.query(first), [Run(first, 1024)])
