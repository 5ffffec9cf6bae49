"""The board ``rtl``: the Verilated kernel, in a thread of this process that runs queued launches in order.

Its memory is apart from the buffers' mirrors, as a card's is: what nobody synchronised, the kernel does not see.
"""

from __future__ import annotations

import mmap
import weakref
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import numpy as np

from hillinfer.csd.abi import numbers
from hillinfer.csd.kernel.board import Board, Buffer, Bytes, Part, Port, Running
from hillinfer.csd.rtl import Kernel
from hillinfer.errors import DeviceError, DeviceFull

_CLOSED = "the board rtl is closed: open another"


class RtlBuffer(Buffer):
    """A buffer's mirror, and the memory that the kernel reaches."""

    def __init__(self, kernel: Kernel, nbytes: int, port: Port) -> None:
        self.nbytes = nbytes
        self.host, self._memory = _pages(nbytes), _pages(nbytes)
        self.address: int = self._memory.ctypes.data
        kernel.map(self.address, self.address, len(self._memory), writable=port is Port.BLOCKS)
        # A launch that still reads it holds the buffer: its memory is there for as long as it is mapped.
        self._unmap = weakref.finalize(self, _unmap, kernel, self.address, self._memory)

    def to_board(self, offset: int, nbytes: int) -> None:
        self._memory[offset : offset + nbytes] = self.host[offset : offset + nbytes]

    def from_board(self, offset: int, nbytes: int) -> None:
        self.host[offset : offset + nbytes] = self._memory[offset : offset + nbytes]

    def close(self) -> None:
        self._unmap()


class RtlRunning(Running):
    """A launch in the queue of the board's thread."""

    def __init__(self, future: Future[None]) -> None:
        self._future = future

    def wait(self) -> None:
        try:
            self._future.result()
        except CancelledError:
            raise DeviceError(_CLOSED) from None


class RtlBoard(Board):
    """The kernel's RTL and memory of this process.

    stalls, latency, seed   how its memory behaves: see Kernel.stalls
    most_cycles             of a launch, before it is given up: see Kernel.checked_launch
    """

    memory_bytes = None
    p2p = False
    alignment = numbers.BEAT_BYTES
    depth = 16

    def __init__(
        self,
        name: str = "rtl",
        *,
        stalls: float = 0.0,
        latency: int = 0,
        seed: int = 0,
        most_cycles: int | None = None,
    ) -> None:
        self.name = name
        self._kernel, self._most_cycles = Kernel(), most_cycles
        self._kernel.stalls(stalls, latency, seed)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        # Nothing that runs refers to the board itself: one that is dropped closes like one that is told to.
        self._close = weakref.finalize(self, _close, self._thread, self._kernel)

    def allocate(self, nbytes: int, port: Port, *, p2p: bool = False) -> RtlBuffer:
        self._check_open()
        if p2p:
            raise DeviceError("the board rtl has no p2p buffers: stream keys on an xrt device")
        try:
            return RtlBuffer(self._kernel, nbytes, port)
        except (OSError, OverflowError):
            raise DeviceFull(f"{self.name} has no {nbytes} bytes for {port.name}: use less of it") from None

    def start(self, query: Part, keys: Part, exps: Part, blocks: Part, scalars: tuple[int, ...]) -> RtlRunning:
        self._check_open()
        parts = (query, keys, exps, blocks)
        return RtlRunning(self._thread.submit(_run, self._kernel, parts, scalars, self._most_cycles))

    def close(self) -> None:
        self._close()

    def _check_open(self) -> None:
        if not self._close.alive:
            raise DeviceError(_CLOSED)


def _run(kernel: Kernel, parts: tuple[Part, ...], scalars: tuple[int, ...], most_cycles: int | None) -> None:
    addresses = []
    for part in parts:
        assert isinstance(part.buffer, RtlBuffer)
        addresses.append(part.buffer.address + part.offset)
    kernel.checked_launch(addresses, scalars, most_cycles)


def _pages(nbytes: int) -> Bytes:
    """Zeros, whole pages, of which those that nobody touches take no memory."""
    return np.frombuffer(mmap.mmap(-1, max(1, nbytes)), np.uint8)


def _unmap(kernel: Kernel, address: int, _memory: Bytes) -> None:
    kernel.unmap(address)


def _close(thread: ThreadPoolExecutor, kernel: Kernel) -> None:
    thread.shutdown(wait=True, cancel_futures=True)
    kernel.close()
