"""The kernel's C simulation as a board: no hardware, no simulator, the same integers.

Memory of the board and its mirror are two things here as well, so that a copy that a driver forgets is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from hillinfer.csd import native
from hillinfer.csd.cold.files import aligned_buffer
from hillinfer.csd.kernel.board import Board, Buffer, Bytes, Part, Port, Running
from hillinfer.errors import DeviceError, DeviceFull


class NativeBuffer(Buffer):
    """Host memory twice: what the kernel sees (``memory``), and the mirror; once for p2p."""

    def __init__(self, nbytes: int, given_back: Callable[[int], None], *, p2p: bool) -> None:
        self.nbytes, self._given_back = nbytes, given_back
        self.memory: Bytes = aligned_buffer(nbytes)
        self.host = self.memory if p2p else aligned_buffer(nbytes)
        self._open = True

    def to_board(self, offset: int, nbytes: int) -> None:
        if self.host is not self.memory:
            self.memory[offset : offset + nbytes] = self.host[offset : offset + nbytes]

    def from_board(self, offset: int, nbytes: int) -> None:
        if self.host is not self.memory:
            self.host[offset : offset + nbytes] = self.memory[offset : offset + nbytes]

    def close(self) -> None:
        if self._open:
            self._open = False
            self._given_back(self.nbytes)
            self.host = self.memory = np.empty(0, np.uint8)


class _Launched(Running):
    def __init__(self, future: Future[None]) -> None:
        self._future = future

    def wait(self) -> None:
        self._future.result()


class NativeBoard(Board):
    """Launches run one after the other on a thread of their own.

    memory_bytes   what buffers may take together; None: host memory, without a bound
    p2p            p2p buffers are host memory, so a drive reaches them
    """

    name = "native"
    alignment = 4096

    def __init__(
        self,
        *,
        library: native.Library | None = None,
        memory_bytes: int | None = None,
        p2p: bool = False,
        depth: int = 64,
    ) -> None:
        self.memory_bytes, self.p2p, self.depth = memory_bytes, p2p, depth
        self._library = library or native.load()
        self.taken = 0
        self._buffers: list[NativeBuffer] = []
        self._kernel = ThreadPoolExecutor(1, thread_name_prefix="native-board")
        self._open = True

    def allocate(self, nbytes: int, port: Port, *, p2p: bool = False) -> NativeBuffer:
        if p2p and not self.p2p:
            raise DeviceError(f"{self.name} has no p2p buffers")
        if self.memory_bytes is not None and self.taken + nbytes > self.memory_bytes:
            left = self.memory_bytes - self.taken
            raise DeviceFull(f"{self.name} has {left} bytes of memory left, and {port.name} needs {nbytes}")
        self.taken += nbytes
        self._buffers.append(NativeBuffer(nbytes, self._give_back, p2p=p2p))
        return self._buffers[-1]

    def _give_back(self, nbytes: int) -> None:
        self.taken -= nbytes

    def start(self, query: Part, keys: Part, exps: Part, blocks: Part, scalars: tuple[int, ...]) -> Running:
        if not self._open:
            raise DeviceError(f"{self.name} is closed")
        for part in (query, keys, exps, blocks):
            if part.offset % self.alignment:
                raise DeviceError(f"{self.name}: an argument starts at byte {part.offset} of its buffer, not at a page")
        return _Launched(self._kernel.submit(self.run, query, keys, exps, blocks, scalars))

    def run(self, query: Part, keys: Part, exps: Part, blocks: Part, scalars: tuple[int, ...]) -> None:
        """One launch, on the board's thread."""
        self._library.run(_address(query), _address(keys), _address(exps), _address(blocks), scalars)

    def close(self) -> None:
        self._open = False
        self._kernel.shutdown(wait=True)
        for buffer in self._buffers:
            buffer.close()


def _address(part: Part) -> int:
    assert isinstance(part.buffer, NativeBuffer)
    return part.buffer.memory.ctypes.data + part.offset
