"""The C simulation as a board: what it refuses is what a card would not forgive."""

from __future__ import annotations

import numpy as np
import pytest

from hillinfer.csd.boards.native import NativeBoard
from hillinfer.csd.kernel.board import Part, Port
from hillinfer.errors import DeviceError, DeviceFull


def test_memory_and_mirror_are_two_things_unless_it_is_p2p():
    board = NativeBoard(p2p=True)
    plain, p2p = board.allocate(8192, Port.KEYS), board.allocate(8192, Port.KEYS, p2p=True)
    for buffer in (plain, p2p):
        assert buffer.host.ctypes.data % 4096 == 0
        assert not buffer.host.any()
        buffer.host[:] = 7
    assert not plain.memory.any()
    assert p2p.memory.all()
    plain.to_board(4096, 64)
    assert np.flatnonzero(plain.memory).tolist() == list(range(4096, 4160))
    plain.host[:] = 0
    plain.from_board(4096, 128)
    assert np.flatnonzero(plain.host).tolist() == list(range(4096, 4160))
    board.close()


def test_memory_is_bounded_and_given_back():
    board = NativeBoard(memory_bytes=10000)
    first = board.allocate(8192, Port.KEYS)
    with pytest.raises(DeviceFull, match="native has 1808 bytes of memory left, and BLOCKS needs 4096"):
        board.allocate(4096, Port.BLOCKS)
    first.close()
    first.close()
    board.allocate(8192, Port.BLOCKS)
    board.close()
    board.close()
    assert board.taken == 0


def test_what_it_refuses():
    board = NativeBoard()
    with pytest.raises(DeviceError, match="no p2p buffers"):
        board.allocate(4096, Port.KEYS, p2p=True)
    part = Part(board.allocate(8192, Port.KEYS))
    with pytest.raises(DeviceError, match="starts at byte 64 of its buffer"):
        board.start(part, Part(part.buffer, 64), part, part, (0, 0, 0, 0, 0, 0))
    board.close()
    with pytest.raises(DeviceError, match="closed"):
        board.start(part, part, part, part, (0, 0, 0, 0, 0, 0))
