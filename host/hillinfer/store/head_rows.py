"""Rows of one KV head of one stream in the memory of the compute device: those of the prompt, then generated ones."""

from __future__ import annotations

import torch

from hillinfer.kv.row_format import RowFormat
from hillinfer.store.reserve import reserve

_GROWTH = 64  # rows by which memory grows where it cannot be reserved without being taken


class HeadRows:
    """Grows by ``append``; rows in place may be replaced by others.

    room   rows that may ever come: on the CPU memory is reserved for them, and taken page by page; elsewhere, and for
           a room of 0, it grows with the rows
    """

    def __init__(self, form: RowFormat, room: int, device: torch.device) -> None:
        self._form, self._device = form, device
        self._reserved = device.type == "cpu" and room > 0
        self._length = 0
        self._columns = [self._make(room if self._reserved else 0, *column) for column in form.columns]

    def _make(self, rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
        if self._reserved:
            return reserve(rows, columns, dtype)
        return torch.empty(rows, columns, dtype=dtype, device=self._device)

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes of the rows held; where memory cannot be reserved, of what is allocated for them."""
        rows = self._length if self._reserved else len(self._columns[0])
        return rows * self._form.row_bytes

    def append(self, rows: torch.Tensor) -> None:
        """Add rows [n, 2, d] behind those held."""
        start, self._length = self._length, self._length + len(rows)
        self._grow(len(rows))
        self._write(start, rows)

    def _grow(self, coming: int) -> None:
        if self._length <= len(self._columns[0]):
            return
        rows = self._length + (_GROWTH if coming < _GROWTH else 0)  # a prompt takes what it needs, no more
        old = self._columns
        self._columns = [self._make(rows, *column) for column in self._form.columns]
        for mine, theirs in zip(self._columns, old, strict=True):
            mine[: len(theirs)] = theirs

    def replace(self, rows: torch.Tensor) -> None:
        """Put rows [n, 2, d] in the place of the first n."""
        assert len(rows) <= self._length
        self._write(0, rows)

    def _write(self, start: int, rows: torch.Tensor) -> None:
        encoded = self._form.encode(rows.to(self._device))
        for column, part in zip(self._columns, encoded, strict=True):
            column[start : start + len(rows)] = part

    @property
    def plain(self) -> torch.Tensor | None:
        """Rows [n, 2·d] as they lie, a view; None where the format rounds them."""
        return self._columns[0][: self._length] if self._form.exact else None

    def read(self, first: int = 0, stop: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [n, d] of the rows first…stop; views where the format is exact."""
        stop = self._length if stop is None else min(stop, self._length)
        rows = self._form.decode([column[first:stop] for column in self._columns])
        return rows[:, 0], rows[:, 1]
