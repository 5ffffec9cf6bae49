"""The pynq board on emulated cards, in PYNQ's own environment: numpy is 1.26 here."""

from __future__ import annotations

import contextlib
import os
import threading
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from hillinfer.csd.boards.pynq import open_board
from hillinfer.csd.kernel.board import Part, Port
from hillinfer.errors import DeviceError, DeviceFull
from scripts.hw_emu import environment
from scripts.hw_emu.faults import VARIABLE
from scripts.hw_emu.xclbin import Card, write_xclbin
from tests.hw_emu.cards import example

IMAGE = Path(os.environ["HILLINFER_XCLBIN"])


def launch_on(board, launch, offset=0):
    """Start a launch whose operands lie ``offset`` bytes into their buffers; the blocks' buffer."""
    buffers = [
        board.allocate(operand.size + offset, port) for port, operand in zip(Port, launch.operands, strict=False)
    ]
    for buffer, operand in zip(buffers, launch.operands, strict=True):
        buffer.host[offset:] = operand.reshape(-1)
        buffer.to_board(offset, operand.size)
    buffers.append(board.allocate(launch.blocks.size + offset, Port.BLOCKS))
    return board.start(*(Part(buffer, offset) for buffer in buffers), launch.launch.scalars), buffers[3]


def blocks_of(board, launch, offset=0):
    running, blocks = launch_on(board, launch, offset)
    running.wait()
    running.wait()
    blocks.from_board(offset, launch.blocks.size)
    return blocks.host[offset:]


@pytest.fixture(scope="module")
def board():
    with contextlib.closing(open_board(0, IMAGE)) as opened:
        yield opened


def test_this_is_the_environment_that_pynq_needs():
    assert metadata.version("pynq") == "3.0.1"
    assert np.__version__.startswith("1.26.")


@pytest.mark.parametrize(("tokens", "tag", "offset"), [(1, -3, 0), (1500, 2**31 - 1, 4096), (64, 0, 64)])
def test_a_launch_gives_what_the_kernel_gives(board, tokens, tag, offset):
    launch = example(tokens, tag)
    assert np.array_equal(blocks_of(board, launch, offset), launch.blocks)


def test_launches_are_queued(board):
    launches = [example(100, tag, seed=tag) for tag in range(board.depth)]
    started = [launch_on(board, launch) for launch in launches]
    started[-1][0].wait()
    for launch, (running, blocks) in zip(launches, started, strict=True):
        running.wait()
        blocks.from_board(0, launch.blocks.size)
        assert np.array_equal(blocks.host, launch.blocks)


def test_buffers_are_zeros_on_both_sides_and_page_aligned(board):
    buffer = board.allocate(10_000, Port.KEYS)
    assert not buffer.host.any()
    assert buffer.host.ctypes.data % 4096 == 0
    buffer.host[:] = 1
    buffer.from_board(0, 10_000)
    assert not buffer.host.any()
    buffer.close()
    buffer.close()


def test_what_pynq_cannot_do_is_told(board):
    assert (board.p2p, board.memory_bytes) == (False, 4 << 30)
    with pytest.raises(DeviceError, match="no p2p buffers"):
        board.allocate(4096, Port.KEYS, p2p=True)
    with pytest.raises(DeviceFull, match="no room for 5368709120 bytes of KEYS"):
        board.allocate(5 << 30, Port.KEYS)
    with pytest.raises(DeviceError, match="does not take a launch"):
        board.start(*(Part(board.allocate(64, port)) for port in Port), (0, 0, 0, 0, 0, 2**31))
    with pytest.raises(DeviceError, match="no pynq:2, as PYNQ finds 2 cards"):
        open_board(2, IMAGE)


def test_boards_share_a_card_from_several_threads(board):
    """One handle of the card in a process: what one board closes, the other goes on using."""
    other, wrong = open_board(0, IMAGE), []

    def use(of, seed):
        for number in range(5):
            launch = example(300, number, seed)
            if not np.array_equal(blocks_of(of, launch), launch.blocks):
                wrong.append((seed, number))

    threads = [threading.Thread(target=use, args=(of, seed)) for seed, of in enumerate((board, other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    other.close()
    other.close()
    with pytest.raises(DeviceError, match="closed"):
        other.allocate(64, Port.KEYS)
    launch = example(300)
    assert np.array_equal(blocks_of(board, launch), launch.blocks)


@pytest.mark.usefixtures("board")
def test_a_card_in_use_takes_no_other_image(tmp_path):
    write_xclbin(tmp_path / "other.xclbin", environment.registers(), Card(clock_mhz=200))
    with pytest.raises(DeviceError, match="open with another xclbin"):
        open_board(0, tmp_path / "other.xclbin")


def test_an_image_of_another_kernel_is_refused(tmp_path):
    write_xclbin(tmp_path / "other.xclbin", environment.registers(), kernel="addone")
    with pytest.raises(DeviceError, match="has addone, and no compute unit of qk_score"):
        open_board(1, tmp_path / "other.xclbin")


def test_a_hung_launch_has_a_deadline_and_the_card_is_lost(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1:hang_after=1")
    board, launch = open_board(1, IMAGE), example()
    assert np.array_equal(blocks_of(board, launch), launch.blocks)
    board._deadline = 0.3  # from here on: a busy machine may take longer for a launch that is well
    running, blocks = launch_on(board, launch)
    for _ in range(2):
        with pytest.raises(DeviceError, match=r"not done after 0\.3 s"):
            running.wait()
    with pytest.raises(DeviceError, match="not done"):
        blocks.from_board(0, 64)
    board.close()
    monkeypatch.delenv(VARIABLE)
    again = open_board(1, IMAGE)
    assert np.array_equal(blocks_of(again, launch), launch.blocks)
    again.close()
