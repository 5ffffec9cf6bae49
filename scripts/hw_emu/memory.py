"""The card's DDR: what was allocated, and which words of it were ever written.

DDR with ECC that was never written has wrong check bits: reading it is an error on the card, and so it is here. A word
is 64 bytes; writing a part of a word that was never written is an error too, as the controller reads it first.
"""

from __future__ import annotations

import bisect
import contextlib
import mmap
import os
import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .errors import CardError

WORD = 64
Bytes = npt.NDArray[np.uint8]

# What is in a p2p buffer that nobody has written to: the host writes there without telling the device.
_POISON = np.frombuffer(bytes.fromhex("dead") * (WORD // 2), np.uint8)


class Allocation:
    """Memory from ``base`` to ``base + size``, in a file when the host maps it as well (p2p)."""

    def __init__(self, base: int, size: int, file: Path | None) -> None:
        self.base, self.size, self.file = base, size, file
        words = -(-size // WORD)
        length = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        if file is None:
            self._map = mmap.mmap(-1, length)
        else:
            descriptor = os.open(file, os.O_CREAT | os.O_RDWR, 0o600)
            try:
                os.ftruncate(descriptor, length)
                self._map = mmap.mmap(descriptor, length)
            finally:
                os.close(descriptor)
        self.memory = np.frombuffer(self._map, np.uint8)
        self._written = np.zeros(words, np.bool_)
        if file is not None:
            self.memory.reshape(-1, WORD)[:] = _POISON

    def check(self, offset: int, size: int) -> None:
        """CardError when a word of this stretch was never written."""
        first, last = offset // WORD, -(-(offset + size) // WORD)
        if self.file is not None:
            words = self.memory[first * WORD : last * WORD].reshape(-1, WORD)
            written = (words != _POISON).any(axis=1)
        else:
            written = self._written[first:last]
        if not written.all():
            at = self.base + (first + int(np.argmin(written))) * WORD
            raise CardError(
                f"ECC error at {at:#x}: {size} bytes are read from {self.base + offset:#x}, "
                f"but that word of the buffer at {self.base:#x} was never written"
            )

    def mark(self, offset: int, size: int) -> None:
        """Note that this stretch was written. CardError when it cuts a word that was not."""
        if self.file is not None or not size:
            return
        first, end = offset // WORD, offset + size
        last = end // WORD
        if offset % WORD and not self._written[first]:
            self.check(offset - offset % WORD, WORD)
        if end % WORD and end != self.size and not self._written[last]:
            self.check(last * WORD, WORD)
        self._written[first : -(-end // WORD)] = True

    def close(self) -> None:
        del self.memory
        with contextlib.suppress(BufferError):  # a launch that never ends still looks at it
            self._map.close()
        if self.file is not None:
            self.file.unlink(missing_ok=True)


class Memory:
    """All allocations, by address. They do not overlap: the host's runtime hands out the addresses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()  # the kernel looks buffers up while the host makes others
        self._bases: list[int] = []
        self._allocations: dict[int, Allocation] = {}

    def allocate(self, base: int, size: int, *, p2p: bool = False) -> str:
        """Make an allocation; of a p2p buffer the name of its file, else an empty string."""
        if base in self._allocations:
            raise CardError(f"a buffer at {base:#x} is allocated a second time")
        file = self._folder / f"p2p-{base:x}" if p2p else None
        allocation = Allocation(base, size, file)
        with self._lock:
            self._allocations[base] = allocation
            bisect.insort(self._bases, base)
        return os.fspath(file) if file else ""

    def free(self, base: int) -> None:
        """Give an allocation up; CardError when there is none at this address."""
        if base not in self._allocations:
            raise CardError(f"no buffer at {base:#x} is there to be freed")
        with self._lock:
            allocation = self._allocations.pop(base)
            self._bases.remove(base)
        allocation.close()

    def read(self, address: int, size: int) -> bytes:
        """Bytes that were written before; CardError otherwise."""
        return self.reading(address, size).tobytes()

    def write(self, address: int, data: bytes) -> None:
        """Write into one allocation; CardError when it does not reach so far."""
        if data:
            self.writing(address, len(data))[:] = np.frombuffer(data, np.uint8)

    def reading(self, address: int, size: int) -> Bytes:
        """The memory itself, for one who will read all of it."""
        allocation, offset = self._find(address, size)
        allocation.check(offset, size)
        return allocation.memory[offset : offset + size]

    def writing(self, address: int, size: int) -> Bytes:
        """The memory itself, for one who will write all of it. It counts as written from now on."""
        allocation, offset = self._find(address, size)
        allocation.mark(offset, size)
        return allocation.memory[offset : offset + size]

    def close(self) -> None:
        for base in list(self._bases):
            self.free(base)

    def _find(self, address: int, size: int) -> tuple[Allocation, int]:
        with self._lock:
            place = bisect.bisect_right(self._bases, address) - 1
            allocation = self._allocations[self._bases[place]] if place >= 0 else None
        if allocation is None or address + size > allocation.base + allocation.size:
            raise CardError(f"{size} bytes at {address:#x} lie outside every buffer")
        return allocation, address - allocation.base
