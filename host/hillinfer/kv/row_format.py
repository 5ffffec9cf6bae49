"""How keys and values lie in the memory of the compute device: as they are, or rounded to 8 or 4 bits.

Rounding is per token, head and run of 32 dimensions, between the smallest and the largest number of the run (a scale
and an offset, float16 each): no token depends on another one, so that rows come and go without being rounded anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch

from hillinfer.errors import SettingError

FORMATS = ("exact", "int8", "int4")
_RUN = 32


class RowFormat(ABC):
    """Turns rows [n, 2, d] (key and value of one KV head) into columns [n, c] of one or more types, and back.

    exact   there is one column, and it is the rows themselves
    """

    exact: ClassVar[bool] = False
    columns: list[tuple[int, torch.dtype]]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return sum(count * dtype.itemsize for count, dtype in self.columns)

    @abstractmethod
    def encode(self, rows: torch.Tensor) -> list[torch.Tensor]:
        """Rows [n, 2, d] as columns."""

    @abstractmethod
    def decode(self, columns: list[torch.Tensor]) -> torch.Tensor:
        """Columns as rows [n, 2, d]; what ``encode`` got, but for rounding."""


def row_format(name: str, head_dim: int, dtype: torch.dtype) -> RowFormat:
    """The format of this name for rows of a head dimension and type."""
    if name not in FORMATS:
        raise SettingError(f"kv_format is {name!r}: it must be one of {', '.join(FORMATS)}")
    if name == "exact":
        return _Exact(head_dim, dtype)
    if head_dim % 2:
        raise SettingError(f"kv_format {name} takes an even head dimension, not {head_dim}: use kv_format=exact")
    return _Rounded(head_dim, dtype, bits=int(name[3:]))


class _Exact(RowFormat):
    exact = True

    def __init__(self, head_dim: int, dtype: torch.dtype) -> None:
        self.columns = [(2 * head_dim, dtype)]
        self._shape = (2, head_dim)

    def encode(self, rows: torch.Tensor) -> list[torch.Tensor]:
        return [rows.flatten(1)]

    def decode(self, columns: list[torch.Tensor]) -> torch.Tensor:
        return columns[0].view(-1, *self._shape)


class _Rounded(RowFormat):
    def __init__(self, head_dim: int, dtype: torch.dtype, bits: int) -> None:
        self._dim, self._dtype, self._bits = head_dim, dtype, bits
        self._run = _RUN if head_dim % _RUN == 0 else head_dim
        self._runs = 2 * head_dim // self._run
        self.columns = [(2 * head_dim * bits // 8, torch.uint8), (2 * self._runs, torch.float16)]

    def encode(self, rows: torch.Tensor) -> list[torch.Tensor]:
        runs = rows.float().reshape(len(rows), self._runs, self._run)
        offset = runs.amin(-1, keepdim=True).half()
        # Up, never down: with a scale rounded down the largest number of a run would be cut off.
        scale = ((runs.amax(-1, keepdim=True) - offset.float()) / (2**self._bits - 1) * (1 + 2**-10)).half()
        steps = (runs - offset.float()) / scale.float().clamp(min=1e-7)
        codes = steps.round().clamp(0, 2**self._bits - 1).to(torch.uint8).flatten(1)
        if self._bits == 4:
            codes = codes[:, 0::2] | codes[:, 1::2] << 4
        return [codes, torch.cat([scale, offset], 2).flatten(1)]

    def decode(self, columns: list[torch.Tensor]) -> torch.Tensor:
        codes, affine = columns
        if self._bits == 4:
            codes = torch.stack([codes & 15, codes >> 4], 2)
        scale, offset = affine.float().view(-1, self._runs, 2).unbind(2)
        runs = codes.view(-1, self._runs, self._run).float() * scale[..., None] + offset[..., None]
        return runs.to(self._dtype).view(-1, 2, self._dim)
