"""Memory that is reserved whole and occupied page by page, so that a pool can grow without ever being copied."""

from __future__ import annotations

import mmap

import torch

_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # named from Python 3.11 on


def reserve(rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
    """A tensor [rows, columns] of zeros; a page takes memory only once it has been written."""
    if not rows * columns:
        return torch.empty(rows, columns, dtype=dtype)
    nbytes = rows * columns * dtype.itemsize
    memory = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    return torch.frombuffer(memory, dtype=dtype, count=rows * columns).view(rows, columns)
