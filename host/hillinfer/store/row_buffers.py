"""Memory that rows of the cold pool are read to, used again from step to step.

A page of fresh memory costs a fault when it is first written to: for 840 rows of 16 KiB, which a drive brings in 12 ms,
those are 3,400 faults.
"""

from __future__ import annotations

import torch

from hillinfer import _native
from hillinfer.kv.geometry import Geometry
from hillinfer.store.reserve import reserve

_KEPT = 3  # two that are read to, where there is a batch, while the rows of the last step are placed
_FEWEST = 64  # rows


class RowBuffers:
    """Shared by all streams of an engine; the largest few are kept."""

    def __init__(self, geometry: Geometry) -> None:
        self._columns, self._dtype = geometry.row_stride, geometry.dtype
        self._free: list[torch.Tensor] = []

    def take(self, count: int) -> torch.Tensor:
        """Memory [count, row_stride] of any content. Whoever does not ``give`` it back leaves it to the collector."""
        for number, whole in enumerate(self._free):
            if len(whole) >= count:
                del self._free[number]
                return whole[:count]
        whole = reserve(max(_FEWEST, 1 << (count - 1).bit_length()), self._columns, self._dtype)
        memory = whole.view(torch.uint8).numpy()
        if memory.size >= 2 << 20:
            _native.in_huge_pages(memory)
        return whole[:count]

    def give(self, rows: torch.Tensor) -> None:
        """Take back what ``take`` gave, which nobody uses any more."""
        whole = rows.untyped_storage().nbytes() // (self._columns * self._dtype.itemsize)
        self._free.append(rows.as_strided((whole, self._columns), (self._columns, 1), 0))
        self._free.sort(key=len)
        del self._free[: max(0, len(self._free) - _KEPT)]
