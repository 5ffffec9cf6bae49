"""Give freed memory back to the system while a long prompt is read.

A prompt's chunks allocate and free tensors of some megabytes in every layer. glibc keeps what is freed, scattered over
its arenas: 75–110 MiB above what was in use, measured with rows of 32 KiB. That is more than the tiers' own overhead.
"""

from __future__ import annotations

import ctypes
from mmap import PAGESIZE
from pathlib import Path

_STATM = Path("/proc/self/statm")
_GARBAGE = 16 << 20  # growth beyond what the tiers explain, from which on a trim (2 ms) is worth it


class Heap:
    """Watches resident memory; trims the heap when it has grown by more than the tiers have."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None)
        self._trim = getattr(libc, "malloc_trim", None) if _STATM.exists() else None
        self._floor: int | None = None

    def tidy(self, held: int) -> None:
        """Return freed memory if there is much of it; ``held``: bytes in the tiers. Does nothing without glibc."""
        if self._trim is None:
            return
        other = self._resident() - held
        if self._floor is None or other < self._floor:
            self._floor = other
        elif other > self._floor + _GARBAGE:
            self._trim(0)
            self._floor = self._resident() - held

    @staticmethod
    def _resident() -> int:
        return int(_STATM.read_text().split()[1]) * PAGESIZE
