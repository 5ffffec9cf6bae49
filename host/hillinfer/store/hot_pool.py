"""The hot pool: rows of pinned and frequently selected tokens in DRAM, one pool per layer and sequence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hillinfer import _native
from hillinfer.kv.column import Column
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.store.reserve import reserve

Positions = npt.NDArray[np.int64]


class HotPool:
    """Copies of rows that are also in the cold pool: dropping one is forgetting it.

    rows       [slots, row_stride], in no order
    slot_of    int32 [tokens]: a token's slot, −1 when it is not here
    tile_fill  int16 [tiles]: how many of a tile's tokens are here
    """

    def __init__(self, geometry: Geometry, reserve_rows: int) -> None:
        self._row_bytes = geometry.row_bytes
        self.rows = reserve(reserve_rows, geometry.row_stride, geometry.dtype)
        self._bytes: npt.NDArray[np.uint8] = self.rows.view(torch.uint8).numpy()
        self._slot_of = Column(np.int32, fill=-1)
        self._tile_fill = Column(np.int16)
        self._position_of = Column(np.int64, fill=-1)
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._position_of) - len(self._free)

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

    def extend(self, tokens: int) -> None:
        """Make room in the tables for tokens 0…tokens − 1."""
        self._slot_of.resize(tokens)
        self._tile_fill.resize(-(-tokens // TILE))

    def positions(self) -> Positions:
        """Positions int64 [len(self)] of the tokens held, in no order."""
        return self.held[self.held >= 0]

    @property
    def held(self) -> Positions:
        """The token in each slot, int64 [slots in use], −1 where there is none; a view."""
        return self._position_of.values

    def insert(self, positions: Positions, rows: torch.Tensor) -> None:
        """Copy in rows [n, row_stride] of tokens that are not here; the caller keeps to the budget."""
        slots = self._take(len(positions))
        self.rows.index_copy_(0, torch.from_numpy(slots), rows)
        self._slot_of.values[positions] = slots
        self._position_of.values[slots] = positions
        self._fill(positions, 1)

    def evict(self, positions: Positions) -> None:
        """Forget tokens that are here."""
        slots = self._slot_of.values[positions]
        self._slot_of.values[positions] = -1
        self._position_of.values[slots] = -1
        self._free.extend(slots.tolist())
        self._fill(positions, -1)

    def exchange(self, demote: Positions, promote: Positions, rows: torch.Tensor, ranks: Positions) -> None:
        """Forget tokens that are here, and give their slots to as many that are not, with rows[ranks]."""
        _native.exchange(
            self._bytes, self.slot_of, self.held, self.tile_fill, demote, promote, rows.view(torch.uint8).numpy(), ranks
        )

    def _fill(self, positions: Positions, by: int) -> None:
        np.add.at(self._tile_fill.values, positions // TILE, by)

    def _take(self, count: int) -> npt.NDArray[np.int64]:
        reused = min(count, len(self._free))
        slots = self._free[len(self._free) - reused :]
        del self._free[len(self._free) - reused :]
        start = len(self._position_of)
        fresh = count - reused
        assert start + fresh <= len(self.rows), "the hot pool was asked to hold more rows than were reserved for it"
        self._position_of.resize(start + fresh)
        return np.concatenate([np.array(slots, np.int64), np.arange(start, start + fresh)])
