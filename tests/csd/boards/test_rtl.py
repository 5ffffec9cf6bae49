"""The Verilated kernel as a board: its own memory, launches in order, and errors after which it goes on."""

from __future__ import annotations

import contextlib
import gc
import threading

import numpy as np
import pytest

from hillinfer.csd.boards.rtl import RtlBoard
from hillinfer.csd.kernel.board import Part, Port
from hillinfer.errors import DeviceError, DeviceFull
from tests.hls.cases import random_case
from tests.rtl_device.build import rtl_library


@pytest.fixture(autouse=True)
def library(monkeypatch):
    monkeypatch.setenv("HILLINFER_RTL", str(rtl_library()))


@pytest.fixture
def board():
    with contextlib.closing(RtlBoard()) as opened:
        yield opened


class Loaded:
    """A case in a board's buffers."""

    def __init__(self, board, seed, tokens=300):
        self.case = random_case(seed, "int8", 2, 3, 40, tokens)
        layout, case = self.case.layout, self.case
        (query,) = layout.pack_query(case.query)
        arrays = [query, layout.pack_keys(case.keys), layout.pack_exponents(case.exponents)]
        ports = (Port.QUERY, Port.KEYS, Port.EXPS)
        self.buffers = [board.allocate(array.nbytes, port) for array, port in zip(arrays, ports, strict=True)]
        for buffer, array in zip(self.buffers, arrays, strict=True):
            buffer.host[:] = array.reshape(-1)
            buffer.to_board(0, buffer.nbytes)
        self.buffers.append(board.allocate(case.launch.block_beats * 64, Port.BLOCKS))
        self.board = board

    def start(self):
        return self.board.start(*map(Part, self.buffers), self.case.launch.scalars)

    def check(self):
        blocks = self.buffers[3]
        blocks.from_board(0, blocks.nbytes)
        assert blocks.host.tobytes() == self.case.expected()


def test_launches_are_done_in_order_and_while_others_are_queued(board):
    loaded = [Loaded(board, seed) for seed in range(5)]
    running = [each.start() for each in loaded]
    for each, run in zip(loaded, running, strict=True):
        run.wait()
        run.wait()
        each.check()


def test_stalled_memory_gives_the_same():
    with contextlib.closing(RtlBoard(stalls=0.6, latency=50, seed=3)) as board:
        each = Loaded(board, 1)
        each.start().wait()
        each.check()


def test_what_nobody_synchronised_the_kernel_does_not_see(board):
    each = Loaded(board, 2)
    each.buffers[1].host[:] = 0
    each.start().wait()
    assert not each.buffers[3].host.any()
    each.check()


def test_parts_of_a_buffer_start_at_any_beat(board):
    each = Loaded(board, 3)
    blocks = board.allocate(64 + each.buffers[3].nbytes, Port.BLOCKS)
    parts = [*map(Part, each.buffers[:3]), Part(blocks, 64)]
    board.start(*parts, each.case.launch.scalars).wait()
    blocks.from_board(0, blocks.nbytes)
    assert not blocks.host[:64].any()
    assert blocks.host[64:].tobytes() == each.case.expected()


def test_a_launch_beyond_its_memory_is_an_error_and_the_next_one_is_none(board):
    each, short = Loaded(board, 4), board.allocate(64, Port.KEYS)
    parts = [Part(each.buffers[0]), Part(short), *map(Part, each.buffers[2:])]
    running = board.start(*parts, each.case.launch.scalars)
    after = each.start()
    for _ in range(2):
        with pytest.raises(DeviceError, match=r"axi_error 0x2\): the kernel reads keys at address 0x"):
            running.wait()
    after.wait()
    each.check()


def test_a_launch_that_takes_too_long_is_given_up():
    with contextlib.closing(RtlBoard(most_cycles=150)) as board:
        each = Loaded(board, 5)
        for _ in range(2):
            with pytest.raises(DeviceError, match="not done after 150 cycles, and was reset"):
                each.start().wait()


def test_it_closes_in_the_midst_of_work_and_twice():
    board = RtlBoard()
    each = Loaded(board, 6, tokens=3000)
    running, held = [each.start()], threading.Event()
    board._thread.submit(held.wait, 60)  # however late this thread is, the next ones are not begun
    running += [each.start() for _ in range(9)]
    closing = threading.Thread(target=board.close)
    closing.start()
    for run in running[1:]:
        with pytest.raises(DeviceError, match="closed"):
            run.wait()
    held.set()
    closing.join()
    board.close()
    for call in (each.start, lambda: board.allocate(64, Port.KEYS)):
        with pytest.raises(DeviceError, match="closed"):
            call()
    for buffer in each.buffers:
        buffer.close()
        buffer.close()


def test_a_dropped_board_ends_its_thread():
    each = Loaded(RtlBoard("dropped"), 7)
    each.start().wait()
    assert any(thread.name.startswith("dropped") for thread in threading.enumerate())
    del each
    gc.collect()
    assert not any(thread.name.startswith("dropped") for thread in threading.enumerate())


def test_what_it_has_not(board):
    with pytest.raises(DeviceError, match="no p2p buffers"):
        board.allocate(4096, Port.KEYS, p2p=True)
    with pytest.raises(DeviceFull, match="rtl has no 1152921504606846976 bytes for KEYS"):
        board.allocate(1 << 60, Port.KEYS)
    np.testing.assert_array_equal(board.allocate(100, Port.EXPS).host, np.zeros(100, np.uint8))
