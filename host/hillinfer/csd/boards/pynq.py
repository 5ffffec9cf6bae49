"""A SmartSSD by way of PYNQ: ``Overlay``, ``allocate``, ``start``; the same on an emulated card (docs/emulation.md).

PYNQ 3.0.1 only: no release after it finds PCIe cards. It has no p2p buffers, so keys are resident. It waits for ever
and overlooks some failed copies: here a launch has a deadline, and copies are made with the call below PYNQ's own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from hillinfer.csd.abi import numbers
from hillinfer.csd.boards.pynq_card import PynqCard, open_card
from hillinfer.csd.kernel.board import Board, Buffer, Part, Port, Running
from hillinfer.errors import DeviceError

DEADLINE = 60.0
"""Seconds a launch may take: the largest one takes one on the card, many more in the RTL's simulation."""


def open_board(index: int, xclbin: Path, *, deadline: float = DEADLINE) -> PynqBoard:
    """A board on the card of this index. DeviceError for another PYNQ, no such card, or a wrong image."""
    return PynqBoard(open_card(index, xclbin), deadline)


class PynqBuffer(Buffer):
    """A buffer of PYNQ: an array that knows its address on the card."""

    def __init__(self, card: PynqCard, array: Any) -> None:
        self._card, self.array = card, array
        self.nbytes = len(array)
        self.host = np.asarray(array).view(np.ndarray)

    def to_board(self, offset: int, nbytes: int) -> None:
        self._card.copy(self.array, "TO", offset, nbytes)

    def from_board(self, offset: int, nbytes: int) -> None:
        self._card.copy(self.array, "FROM", offset, nbytes)

    def close(self) -> None:
        if self.array is not None:
            array, self.array = self.array, None
            self.host = np.empty(0, np.uint8)
            array.freebuffer()


class PynqRunning(Running):
    """A launch in XRT's queue."""

    def __init__(self, card: PynqCard, handle: Any, deadline: float) -> None:
        self._card, self.handle, self._deadline = card, handle, deadline

    def wait(self) -> None:
        self._card.wait(self.handle, self._deadline)


class PynqBoard(Board):
    """Buffers and launches of one driver on a card that others may use as well. ``open_board`` makes it."""

    p2p = False
    alignment = numbers.BEAT_BYTES
    depth = 16  # of XRT's command queue

    def __init__(self, card: PynqCard, deadline: float) -> None:
        self.name, self.memory_bytes = card.name, card.memory_bytes
        self._card, self._deadline = card, deadline
        self._buffers: list[PynqBuffer] = []
        self._running: list[PynqRunning] = []
        self._open = True

    def allocate(self, nbytes: int, port: Port, *, p2p: bool = False) -> PynqBuffer:
        self._check()
        if p2p:
            raise DeviceError(f"{self.name}: PYNQ has no p2p buffers; keys are streamed by xrt devices only")
        buffer = PynqBuffer(self._card, self._card.allocate(nbytes, port))
        self._buffers.append(buffer)
        buffer.host[:] = 0
        buffer.to_board(0, nbytes)
        return buffer

    def start(self, query: Part, keys: Part, exps: Part, blocks: Part, scalars: tuple[int, ...]) -> PynqRunning:
        self._check()
        arrays = []
        for part in (query, keys, exps, blocks):
            assert isinstance(part.buffer, PynqBuffer)
            arrays.append(part.buffer.array[part.offset :])
        running = PynqRunning(self._card, self._card.start(arrays, scalars), self._deadline)
        self._running = [each for each in self._running if not each.handle.done]
        self._running.append(running)
        return running

    def close(self) -> None:
        if not self._open:
            return
        self._open = False
        try:
            for running in self._running:  # it reads and writes buffers that are about to go
                running.wait()
        except DeviceError:
            pass  # whoever waited for it has been told
        for buffer in self._buffers:
            buffer.close()
        self._running.clear()
        self._card.leave()

    def _check(self) -> None:
        if not self._open:
            raise DeviceError(f"{self.name} is closed: open another")
