"""Keys and values that a policy has kept, per KV head, in the memory of the compute device.

What is dropped is gone and its memory free: rows move to memory of the size that the rest takes. Positions are those
in the sequence, whatever was dropped in between.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hillinfer.kv.geometry import Geometry
from hillinfer.store.reserve import reserve

FREE = 1 << 62
"""Position of a slot without a row: later than any token, so that a causal mask hides it."""

_GROWTH = 64  # where memory cannot be reserved without being taken, it grows by a part in so many, by copying


@dataclass
class Held:
    """Rows of one stream as a policy sees them, views [H, n, …]; head h has rows in its first ``counts[h]`` slots.

    keys, values   [H, n, d]
    positions      int64 [H, n]: of the tokens in the sequence; FREE in slots without a row
    weights        float32 [H, n]: a number per row, the policy's own; 0 for a new row, it goes where the row goes
    tokens         tokens the stream has seen, those it dropped included
    """

    keys: torch.Tensor
    values: torch.Tensor
    positions: torch.Tensor
    weights: torch.Tensor
    counts: list[int]
    tokens: int

    @property
    def rows(self) -> int:
        """Rows of all heads together."""
        return sum(self.counts)


class KeptRows:
    """Rows of one stream. In which slot a row lies says nothing, except while ``in_order``.

    paged   memory is reserved for ``max_tokens`` and taken page by page; None: where the device is the CPU
    """

    def __init__(self, geometry: Geometry, max_tokens: int, device: torch.device, *, paged: bool | None = None) -> None:
        self._geometry, self._max_tokens, self._device = geometry, max_tokens, device
        self.paged = device.type == "cpu" if paged is None else paged
        self._heads = torch.arange(geometry.kv_heads, device=device)
        self.tokens = 0
        self.in_order = True
        self._allocate([0] * geometry.kv_heads, 0)

    def _allocate(self, counts: list[int], rows: int) -> None:
        """New memory with room for ``rows`` rows per head, or for as many as may come if it is taken page by page."""
        heads, dim = self._geometry.kv_heads, self._geometry.head_dim
        self.counts = counts
        if self.paged:
            self._room = self._max_tokens

            def make(columns: int, dtype: torch.dtype) -> torch.Tensor:
                return reserve(heads * self._room, columns, dtype).view(heads, self._room, columns)
        else:
            self._room = rows

            def make(columns: int, dtype: torch.dtype) -> torch.Tensor:
                return torch.zeros(heads, self._room, columns, dtype=dtype, device=self._device)

        self._keys, self._values = make(dim, self._geometry.dtype), make(dim, self._geometry.dtype)
        self._positions, self._weights = make(1, torch.int64)[..., 0], make(1, torch.float32)[..., 0]

    @property
    def nbytes(self) -> int:
        """Bytes of the keys and values held; where memory is not taken by pages, of what is allocated for them."""
        rows = sum(self.counts) if self.paged else self._geometry.kv_heads * self._room
        return rows * 2 * self._geometry.head_dim * self._geometry.dtype.itemsize

    @property
    def even(self) -> bool:
        """Whether every head has the same number of rows."""
        return min(self.counts) == max(self.counts)

    @property
    def held(self) -> Held:
        """All rows, as views."""
        n = max(self.counts)
        return Held(
            self._keys[:, :n],
            self._values[:, :n],
            self._positions[:, :n],
            self._weights[:, :n],
            self.counts,
            self.tokens,
        )

    def head(self, head: int, first: int = 0, stop: int | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values [n, d] of one head's slots, views."""
        stop = self.counts[head] if stop is None else min(stop, self.counts[head])
        return self._keys[head, first:stop], self._values[head, first:stop]

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Add the next tokens of the sequence, keys and values [H, n, d], to every head."""
        new = keys.shape[1]
        self._grow(max(self.counts) + new)
        span = (self.tokens, self.tokens + new)
        positions: torch.Tensor | int = torch.arange(*span, device=self._device) if new > 1 else self.tokens
        ranges = [slice(0, None)] if self.even else [slice(h, h + 1) for h in range(len(self.counts))]
        for heads in ranges:
            slots = slice(self.counts[heads.start], self.counts[heads.start] + new)
            self._keys[heads, slots] = keys[heads]
            self._values[heads, slots] = values[heads]
            self._positions[heads, slots] = positions
            self._weights[heads, slots] = 0
        self.counts = [count + new for count in self.counts]
        self.tokens += new
        self._mark_free()

    def keep(self, slots: list[torch.Tensor]) -> int:
        """Keep only these slots of each head, int64 [k_h], in order of position; returns the bytes held meanwhile."""
        old, before = (self._keys, self._values, self._positions, self._weights), self.nbytes
        self._allocate([len(each) for each in slots], 1 + max(len(each) for each in slots))  # 1: the next token
        for head, chosen in enumerate(slots):
            index = chosen[old[2][head].index_select(0, chosen).argsort()]
            for mine, theirs in zip((self._keys, self._values, self._positions, self._weights), old, strict=True):
                mine[head, : len(index)] = theirs[head].index_select(0, index)
        self._mark_free()
        self.in_order = True
        return before + self.nbytes

    def drop_one(self, slots: torch.Tensor) -> None:
        """Drop one row of each head, slots int64 [H]: the last row takes its place. For heads with equally many."""
        last = self.counts[0] - 1
        for each in (self._keys, self._values, self._positions, self._weights):
            each[self._heads, slots] = each[:, last].clone()
        self.counts = [count - 1 for count in self.counts]
        self.in_order = False

    def order(self) -> None:
        """Bring the rows of every head in order of position."""
        if not self.in_order:
            self.keep([torch.arange(count, device=self._device) for count in self.counts])

    def _grow(self, rows: int) -> None:
        """Room for so many rows per head."""
        if rows > self._room:
            old, counts = (self._keys, self._values, self._positions, self._weights), self.counts
            n = max(counts)
            self._allocate(counts, rows + rows // _GROWTH)
            for mine, theirs in zip((self._keys, self._values, self._positions, self._weights), old, strict=True):
                mine[:, :n] = theirs[:, :n]

    def _mark_free(self) -> None:
        if not self.even:
            for head, count in enumerate(self.counts):
                self._positions[head, count : max(self.counts)] = FREE
