"""The xrt board on a card of 64 MB: what it computes, what it refuses, and that it gives everything back."""

from __future__ import annotations

import gc
import threading
import uuid
from pathlib import Path

import numpy as np
import pytest

from hillinfer.csd.boards.xrt import open_board
from hillinfer.csd.kernel.board import Part, Port
from hillinfer.errors import DeviceError, DeviceFull
from scripts.hw_emu import environment
from scripts.hw_emu.faults import VARIABLE
from scripts.hw_emu.xclbin import Card, write_xclbin
from tests.hw_emu.cards import example


@pytest.fixture
def board():
    opened = open_board("xrt:0")
    yield opened
    opened.close()


class Prepared:
    """A launch with its buffers on a board; operands start ``offset`` bytes into them."""

    def __init__(self, board, launch, offset=0, p2p=False):
        self.board, self.launch, self.offset = board, launch, offset
        sizes = [operand.size for operand in launch.operands] + [launch.blocks.size]
        self.buffers = [
            board.allocate(offset + size, port, p2p=p2p and port is Port.KEYS)
            for port, size in zip(Port, sizes, strict=True)
        ]
        for buffer, operand in zip(self.buffers, launch.operands, strict=False):
            buffer.host[offset : offset + operand.size] = operand.reshape(-1)
            buffer.to_board(offset, operand.size)

    def start(self):
        parts = [Part(buffer, self.offset) for buffer in self.buffers]
        return self.board.start(*parts, self.launch.launch.scalars)

    def blocks(self):
        size = self.launch.blocks.size
        self.buffers[Port.BLOCKS].from_board(self.offset, size)
        return self.buffers[Port.BLOCKS].host[self.offset : self.offset + size]


def test_launches_queued_behind_each_other_and_a_full_queue(board):
    assert board.p2p
    assert board.memory_bytes == 64 << 20
    prepared = [Prepared(board, example(300 * i, tag=i, seed=i), 4096 * (i % 3), p2p=bool(i % 2)) for i in range(1, 9)]
    running = [prepared[i % 8].start() for i in range(board.depth)]
    with pytest.raises(DeviceError, match=r"xrt:0 has 64 launches under way: wait for one"):
        prepared[0].start()
    for run in running:
        run.wait()
        run.wait()
    for each in prepared:
        np.testing.assert_array_equal(each.blocks(), each.launch.blocks)


def test_what_it_refuses(board):
    launch = example()
    prepared = Prepared(board, launch)
    query, keys, exps, blocks = map(Part, prepared.buffers)
    with pytest.raises(DeviceError, match="at byte 64 of its buffer, not at a page"):
        board.start(query, Part(keys.buffer, 64), exps, blocks, launch.launch.scalars)
    for scalar in (1 << 31, -(1 << 31) - 1):
        with pytest.raises(DeviceError, match="no 32-bit signed number"):
            board.start(query, keys, exps, blocks, (*launch.launch.scalars[:-1], scalar))
    with pytest.raises(DeviceError, match="bytes 4096 to 8192 of a buffer of 4096"):
        query.buffer.to_board(4096, 4096)
    keys.buffer.close()
    keys.buffer.close()
    with pytest.raises(DeviceError, match="no open buffer"):
        board.start(query, keys, exps, blocks, launch.launch.scalars)
    board.close()
    board.close()
    for call in (lambda: board.allocate(4096, Port.KEYS), lambda: query.buffer.to_board(0, 64)):
        with pytest.raises(DeviceError, match="xrt:0 is closed"):
            call()


def test_out_of_memory_is_told_and_memory_comes_back(board):
    held = [board.allocate(15 << 20, Port.KEYS, p2p=i == 1) for i in range(4)]
    with pytest.raises(DeviceFull, match=r"xrt:0: allocating 15728640 bytes failed"):
        board.allocate(15 << 20, Port.KEYS)
    held.pop().close()
    assert not board.allocate(15 << 20, Port.KEYS).host.any()
    prepared = Prepared(board, example())
    prepared.start().wait()
    np.testing.assert_array_equal(prepared.blocks(), prepared.launch.blocks)


def test_other_threads_go_on_while_a_launch_is_waited_for(monkeypatch):
    monkeypatch.setenv(VARIABLE, "slow=1000")
    board = open_board("xrt:0")
    prepared, turns, over = Prepared(board, example()), [], threading.Event()

    def other() -> None:
        while not over.wait(0.001):
            turns.append(True)

    thread = threading.Thread(target=other)
    running = prepared.start()
    thread.start()
    running.wait()
    over.set()
    thread.join()
    assert len(turns) > 5  # one before it, one after it, if this thread kept the interpreter
    board.close()


def test_a_dropped_board_waits_for_its_launch_and_opens_again(monkeypatch):
    monkeypatch.setenv(VARIABLE, "slow=200")
    board = open_board("xrt:0")
    prepared = Prepared(board, example())
    prepared.start()
    del board, prepared
    gc.collect()
    monkeypatch.delenv(VARIABLE)
    board = open_board("xrt:0")
    prepared = Prepared(board, example())
    prepared.start().wait()
    np.testing.assert_array_equal(prepared.blocks(), prepared.launch.blocks)
    board.close()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"platform": "xilinx_u250_gen3x16_xdma_3_1"}, r"another shell \(xilinx_u250\S+\) than xrt:0 has \(xilinx_u2_"),
        ({"version": b"qk_score:2.0"}, "another ABI than this package: version 2.0 of the kernel, not 1"),
    ],
)
def test_images_for_another_shell_or_of_another_abi(tmp_path, given, message):
    image = tmp_path / "other.xclbin"
    card = Card(interface=uuid.UUID(int=0), **{key: given[key] for key in given if key == "platform"})
    write_xclbin(image, environment.registers(), card)
    if "version" in given:
        image.write_bytes(image.read_bytes().replace(b"qk_score:1.0", given["version"]))
    with pytest.raises(DeviceError, match=message):
        open_board("xrt:0", image)


def test_a_card_that_is_not_there_and_an_image_that_is_none(tmp_path):
    with pytest.raises(DeviceError, match=r"xrt:0000:99:00.1: opening .* failed"):
        open_board("xrt:0000:99:00.1")
    foreign = tmp_path / "foreign.xclbin"
    foreign.write_bytes(Path(__file__).read_bytes())
    with pytest.raises(DeviceError, match="is not an xclbin"):
        open_board("xrt:0", foreign)
