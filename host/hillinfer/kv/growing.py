"""A tensor that grows along one dimension without being copied at every step."""

from __future__ import annotations

import torch


def rows_allocated(rows: int) -> int:
    """Most rows a tensor of ``rows`` rows has memory for."""
    return rows + rows // 8 + 4


class GrowingTensor:
    """Rows [H, n, width], of which there will be more; ``values`` is a view of those in use."""

    def __init__(self, heads: int, width: int, dtype: torch.dtype, device: torch.device) -> None:
        self._data = torch.empty(heads, 0, width, dtype=dtype, device=device)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def values(self) -> torch.Tensor:
        return self._data[:, : self._length]

    @property
    def width(self) -> int:
        return self._data.shape[2]

    @property
    def nbytes(self) -> int:
        """Bytes allocated, those for rows to come included."""
        return self._data.nbytes

    def append(self, rows: torch.Tensor) -> None:
        """Add rows [H, m, width] at the end, cast to the tensor's dtype."""
        start, self._length = self._length, self._length + rows.shape[1]
        heads, room, width = self._data.shape
        if self._length > room:
            bigger = self._data.new_empty(heads, rows_allocated(self._length), width)
            bigger[:, :start] = self._data[:, :start]
            self._data = bigger
        self._data[:, start : self._length] = rows
