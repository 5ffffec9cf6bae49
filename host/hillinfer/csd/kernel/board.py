"""What the driver asks of a board: memory that the kernel reads and writes, and launches of the kernel.

A board is a SmartSSD (xrt, pynq), the Verilated kernel in this process (rtl), or its C simulation (native). What the
keys in the memory mean, how a stream is cut into launches and what Score Blocks say is the driver's business.
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]


class Port(enum.IntEnum):
    """The pointer arguments of ``qk_score``, by their index: each may be in a memory bank of its own."""

    QUERY = 0
    KEYS = 1
    EXPS = 2
    BLOCKS = 3


class Buffer(ABC):
    """Memory of the board with a mirror in host memory. Every byte of it has been written once (zeros).

    An ordinary buffer's mirror takes host memory. A p2p buffer has none, so the driver keeps resident keys in p2p
    buffers where the board has them.
    """

    nbytes: int
    host: Bytes
    """uint8 [nbytes]: the mirror, or of a p2p buffer the board's memory itself. Page-aligned."""

    @abstractmethod
    def to_board(self, offset: int, nbytes: int) -> None:
        """Copy this part of the mirror to the board. A p2p buffer needs none."""

    @abstractmethod
    def from_board(self, offset: int, nbytes: int) -> None:
        """Copy this part of the board's memory to the mirror: bytes that the kernel, or ``to_board``, wrote."""

    @abstractmethod
    def close(self) -> None:
        """Give the memory back. May be called twice."""


@dataclass(frozen=True)
class Part:
    """Where an argument starts: ``offset`` bytes into ``buffer``, a multiple of 4096 (the alignment of sub-buffers)
    except on boards whose ``alignment`` says that less will do."""

    buffer: Buffer
    offset: int = 0


class Running(ABC):
    """A launch that was queued."""

    @abstractmethod
    def wait(self) -> None:
        """Until the kernel is done; may be called again. DeviceError in the card's own words when it failed, or took
        too long. On a board that is lost this raises at once, for every launch.
        """


class Board(ABC):
    """A compute unit of ``qk_score`` and its memory. Calls come one at a time. Launches are done in the order they were
    started. A board that is lost (dead, hung) says so at once from every call, ``close`` excepted.

    memory_bytes   for buffers of all kinds; None: host memory, without a bound of its own
    p2p            an NVMe drive can write into p2p buffers without passing through host memory
    alignment      of the offset of a Part, bytes
    depth          launches that may be queued at once
    """

    name: str
    memory_bytes: int | None
    p2p: bool
    alignment: int
    depth: int

    @abstractmethod
    def allocate(self, nbytes: int, port: Port, *, p2p: bool = False) -> Buffer:
        """Memory that the kernel reaches through ``port``, zeros on both sides. DeviceFull when there is no room."""

    @abstractmethod
    def start(self, query: Part, keys: Part, exps: Part, blocks: Part, scalars: tuple[int, ...]) -> Running:
        """Queue one launch; ``scalars`` are Launch.scalars. What it reads must not change until it is done."""

    @abstractmethod
    def close(self) -> None:
        """Wait for what runs, give everything back. May be called twice."""
