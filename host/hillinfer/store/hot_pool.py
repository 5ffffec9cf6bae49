"""The hot pool: rows of pinned and frequently selected tokens in DRAM, one pool per layer and sequence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hillinfer import _native
from hillinfer.kv.column import Column
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.store.reserve import LargePages, reserve

Positions = npt.NDArray[np.int64]


class HotPool:
    """Copies of rows that are also in the cold pool: dropping one is forgetting it.

    A token is here as a *resident*, until placement decides otherwise, or as a *guest*: it was just read, is worth
    keeping for a few steps, and makes room for the next in order of last use.

    rows       [slots, row_stride], in no order; bytes: the same as uint8 [slots, row_bytes]
    slot_of    int32 [tokens]: a token's slot, −1 when it is not here
    residents  int64 [slots in use]: the resident in each slot, −1 where there is none
    tile_fill  int16 [tiles]: how many of a tile's tokens are here
    """

    def __init__(self, geometry: Geometry, reserve_rows: int) -> None:
        self._row_bytes = geometry.row_bytes
        self.rows = reserve(reserve_rows, geometry.row_stride, geometry.dtype)
        self.bytes: npt.NDArray[np.uint8] = self.rows.view(torch.uint8).numpy()
        self._pages = LargePages(self.bytes)
        self._slot_of = Column(np.int32, fill=-1)
        self._tile_fill = Column(np.int16)
        self._residents = Column(np.int64, fill=-1)
        self._guests = Column(np.int64, fill=-1)
        self._last_use = Column(np.int64)  # of guests, by slot
        self._clock = 0
        self._free: list[int] = []
        self.guests = 0

    def __len__(self) -> int:
        return len(self._residents) - len(self._free)

    @property
    def tokens(self) -> int:
        """Tokens the tables know of: those in the log."""
        return len(self._slot_of)

    @property
    def nbytes(self) -> int:
        """Bytes of the rows held."""
        return len(self) * self._row_bytes

    @property
    def slot_of(self) -> npt.NDArray[np.int32]:
        return self._slot_of.values

    @property
    def tile_fill(self) -> npt.NDArray[np.int16]:
        return self._tile_fill.values

    @property
    def residents(self) -> Positions:
        return self._residents.values

    def extend(self, tokens: int) -> None:
        """Make room in the tables for tokens 0…tokens − 1."""
        self._slot_of.resize(tokens)
        self._tile_fill.resize(-(-tokens // TILE))

    def positions(self) -> Positions:
        """Positions int64 of the residents, in no order."""
        return self.residents[self.residents >= 0]

    def insert(self, positions: Positions, rows: torch.Tensor, *, guests: bool = False) -> None:
        """Copy in rows [n, row_stride] of tokens that are not here; the caller keeps to the budget."""
        slots = self._take(len(positions))
        self.rows.index_copy_(0, torch.from_numpy(slots), rows)
        self._pages.filled(len(self._residents) * self._row_bytes)
        self._slot_of.values[positions] = slots
        (self._guests if guests else self._residents).values[slots] = positions
        if guests:
            self._last_use.values[slots] = self._clock
            self.guests += len(positions)
        self._fill(positions, 1)

    def evict(self, positions: Positions) -> None:
        """Forget tokens that are here."""
        slots = self._slot_of.values[positions]
        self.guests -= int(np.count_nonzero(self._guests.values[slots] >= 0))
        self._slot_of.values[positions] = -1
        self._residents.values[slots] = -1
        self._guests.values[slots] = -1
        self._free.extend(slots.tolist())
        self._fill(positions, -1)

    def exchange(self, demote: Positions, promote: Positions, rows: torch.Tensor, ranks: Positions) -> None:
        """Forget residents, and give their slots to as many tokens that are not here, with rows[ranks]."""
        self._exchange(self.residents, demote, promote, rows, ranks)

    # ---- guests

    def greet(self, slots: npt.NDArray[np.int64]) -> Positions:
        """A step has used the rows in ``slots``: the guests among them, which thereby stay longer."""
        self._clock += 1
        guests = self._guests.values[slots]
        present = guests >= 0
        self._last_use.values[slots[present]] = self._clock
        return guests[present]

    def longest_unused(self, count: int) -> Positions:
        """The ``count`` guests to give up first."""
        slots = np.flatnonzero(self._guests.values >= 0)
        if count < len(slots):
            slots = slots[np.argpartition(self._last_use.values[slots], count)[:count]]
        return self._guests.values[slots]

    def replace_guests(self, leaving: Positions, coming: Positions, rows: torch.Tensor, ranks: Positions) -> None:
        """Guests leave, and as many tokens that are not here take their slots, with rows[ranks]."""
        self._last_use.values[self.slot_of[leaving]] = self._clock
        self._exchange(self._guests.values, leaving, coming, rows, ranks)

    def trade(self, residents: Positions, guests: Positions) -> None:
        """As many residents become guests as guests become residents; no row moves."""
        old, new = self.slot_of[residents], self.slot_of[guests]
        self._residents.values[old], self._guests.values[old] = -1, residents
        self._guests.values[new], self._residents.values[new] = -1, guests
        self._last_use.values[old] = self._clock

    def _exchange(
        self, tokens: Positions, leaving: Positions, coming: Positions, rows: torch.Tensor, ranks: Positions
    ) -> None:
        source = rows.view(torch.uint8).numpy()
        _native.exchange(self.bytes, self.slot_of, tokens, self.tile_fill, leaving, coming, source, ranks)

    def _fill(self, positions: Positions, by: int) -> None:
        np.add.at(self._tile_fill.values, positions // TILE, by)

    def _take(self, count: int) -> npt.NDArray[np.int64]:
        reused = min(count, len(self._free))
        slots = self._free[len(self._free) - reused :]
        del self._free[len(self._free) - reused :]
        start = len(self._residents)
        fresh = count - reused
        assert start + fresh <= len(self.rows), "the hot pool was asked to hold more rows than were reserved for it"
        for column in (self._residents, self._guests, self._last_use):
            column.resize(start + fresh)
        return np.concatenate([np.array(slots, np.int64), np.arange(start, start + fresh)])
