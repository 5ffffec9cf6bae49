"""Shapes and sizes of one model's KV cache, in the units the tiers use: rows, tiles and blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from hillinfer import _native

TILE = 64
"""Tokens per tile: they share one exponent per KV head, and are scored by one side (kernel.md, ``exps``)."""

BLOCK = 1024
"""Tokens per Score Block (kernel.md, ``blocks``)."""

_ROW_ALIGNMENT = 64  # so that a tile is a multiple of 4096 bytes, which O_DIRECT takes on every disk


@dataclass(frozen=True)
class Geometry:
    """One token's KV of one layer is a *row*: [K of every KV head | V of every KV head], contiguous, padded.

    A row is what is stored, moved and read: key and value together, so that a selected token is one read.

    layers     layers whose KV this engine holds (sliding-window layers keep their own cache)
    kv_heads   KV heads H; group: query heads per KV head G; head_dim: d of keys and of values
    dtype      of keys and values as they are attended
    key_format of the scoring copy's integers, "int8" or "int4"
    copy_dim   elements of a head's key in the scoring copy where it is a fitted one; None: the keys themselves, cast
    """

    layers: int
    kv_heads: int
    group: int
    head_dim: int
    dtype: torch.dtype
    key_format: str = "int8"
    copy_dim: int | None = None

    @cached_property
    def row_elements(self) -> int:
        """Elements of a row without padding: 2·H·d."""
        return 2 * self.kv_heads * self.head_dim

    @cached_property
    def row_bytes(self) -> int:
        """Bytes of a row as stored."""
        payload = self.row_elements * self.dtype.itemsize
        return -(-payload // _ROW_ALIGNMENT) * _ROW_ALIGNMENT

    @cached_property
    def row_stride(self) -> int:
        """Elements from one row to the next."""
        return self.row_bytes // self.dtype.itemsize

    @cached_property
    def score_key_bytes(self) -> int:
        """Bytes of a token's key in the scoring copy as it is scanned here, all KV heads."""
        return _native.tile_bytes(self.kv_heads, self.scored_dim, self.key_format) // TILE

    @property
    def scored_dim(self) -> int:
        """Elements of a head's key in the scoring copy."""
        return self.head_dim if self.copy_dim is None else self.copy_dim

    def kv_bytes(self, tokens: int, sequences: int) -> int:
        """Bytes of the whole KV cache of ``tokens`` tokens in each of ``sequences`` sequences, all layers."""
        return self.layers * sequences * tokens * self.row_bytes

    def group_heads(self, query: torch.Tensor) -> torch.Tensor:
        """A query [H·G, …] of a model by KV head: [H, G, …], a view where it can be one."""
        return query.reshape(self.kv_heads, self.group, *query.shape[1:])

    def pack_rows(self, keys: torch.Tensor, values: torch.Tensor, before: int = 0) -> torch.Tensor:
        """Rows [before + n, row_stride] of keys and values [H, n, d]; the first ``before`` are left free."""
        tokens = keys.shape[1]
        if tokens == 1 and not before and self.row_stride == self.row_elements:  # a step's: no zeros to fill in
            return torch.cat((keys.reshape(1, -1), values.reshape(1, -1)), 1)
        packed = keys.new_zeros(before + tokens, self.row_stride)
        rows = packed[before:]
        split = self.kv_heads * self.head_dim
        rows[:, :split].view(tokens, self.kv_heads, self.head_dim).copy_(keys.transpose(0, 1))
        rows[:, split : 2 * split].view(tokens, self.kv_heads, self.head_dim).copy_(values.transpose(0, 1))
        return packed

    def unpack_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [H, n, d] as views of rows [n, row_stride]."""
        split = self.kv_heads * self.head_dim
        shape = (rows.shape[0], self.kv_heads, self.head_dim)
        keys = rows[:, :split].view(shape)
        values = rows[:, split : 2 * split].view(shape)
        return keys.transpose(0, 1), values.transpose(0, 1)
