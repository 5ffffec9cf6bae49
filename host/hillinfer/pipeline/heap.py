"""Give freed memory back to the system while a long prompt is read.

A prompt's chunks allocate and free tensors of some megabytes in every layer. glibc keeps what is freed, scattered over
its arenas: 75–110 MiB above what was in use, measured with rows of 32 KiB. That is more than the tiers' own overhead.
"""

from __future__ import annotations

import ctypes
from mmap import PAGESIZE
from pathlib import Path

_STATM = Path("/proc/self/statm")
_GARBAGE = 16 << 20  # growth beyond what tiers and layers explain, from which on a trim (2 ms) is worth it


class Heap:
    """Watches resident memory; trims the heap when it has grown by more than the tiers have.

    A layer's own tensors are free between two layers and needed again in the next one. To give those back too would
    make the system map, and clear, every page of them once per layer.
    """

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self._trim = getattr(libc, "malloc_trim", None) if _STATM.exists() else None
        self._floor: int | None = None
        self._trimmed = False
        self._again = 0  # bytes that were taken from the system again right after the last trim

    def tidy(self, held: int) -> None:
        """Return freed memory if there is much of it; ``held``: bytes in the tiers. Does nothing without glibc."""
        if self._trim is None:
            return
        other, trimmed = self._resident() - held, self._trimmed
        self._trimmed = False
        if self._floor is None or other < self._floor:
            self._floor = other
        elif trimmed:
            self._again = max(other - self._floor, self._again * 7 // 8)  # layers differ: the largest, for a while
        elif other > self._floor + self._again + max(_GARBAGE, self._again // 2):
            self._trim(0)
            self._trimmed = True
            self._floor = self._resident() - held

    @staticmethod
    def _resident() -> int:
        return int(_STATM.read_text().split()[1]) * PAGESIZE
