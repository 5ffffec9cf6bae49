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

import numpy as np
import numpy.typing as npt

from .errors import CardError

WORD = 64
Bytes = npt.NDArray[np.uint8]

# What is in a p2p buffer that nobody has written to: the host writes there without telling the device.
_POISON = np.frombuffer(bytes.fromhex("dead") * (WORD // 2), np.uint8)


class Allocation:
    """Memory from ``base`` to ``base + size``, in a file without a place when the host maps it as well (p2p).

    name   what the host opens for a p2p buffer; else empty
    """

    def __init__(self, base: int, size: int, *, p2p: bool) -> None:
        self.base, self.size, self.p2p = base, size, p2p
        length = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
        self._file = os.memfd_create(f"p2p-{base:x}") if p2p else -1
        if p2p:
            os.ftruncate(self._file, length)
        self.name = f"/proc/{os.getpid()}/fd/{self._file}" if p2p else ""
        self._map = mmap.mmap(self._file, length)
        self.memory = np.frombuffer(self._map, np.uint8)
        self._written = np.zeros(-(-size // WORD), np.bool_)
        if p2p:
            self.memory.reshape(-1, WORD)[:] = _POISON

    def check(self, offset: int, size: int) -> None:
        """CardError when a word of this stretch was never written."""
        first, last = offset // WORD, -(-(offset + size) // WORD)
        if self.p2p:
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
        if self.p2p or not size:
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
        if self._file >= 0:
            os.close(self._file)


class Memory:
    """All allocations, by address. They do not overlap: the host's runtime hands out the addresses."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # the kernel looks buffers up while the host makes others
        self._bases: list[int] = []
        self._allocations: dict[int, Allocation] = {}

    def allocate(self, base: int, size: int, *, p2p: bool = False) -> str:
        """Make an allocation; of a p2p buffer the name of its file, else an empty string."""
        if base in self._allocations:
            raise CardError(f"a buffer at {base:#x} is allocated a second time")
        allocation = Allocation(base, size, p2p=p2p)
        with self._lock:
            self._allocations[base] = allocation
            bisect.insort(self._bases, base)
        return allocation.name

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
        if size:
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
