"""The device tier: the newest tokens, where they were computed, until they leave it tile by tile for the log."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hillinfer import _native
from hillinfer.kv.copies.base import ScoringCopy
from hillinfer.kv.copies.int8 import Int8Copy
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import LIMITS
from hillinfer.kv.scoring import Tiles, tile_bytes
from hillinfer.store.reserve import reserve


class DeviceTier:
    """Rows of consecutive tokens [first, first + len) on the compute device; ``first`` begins a tile.

    Their scoring keys are kept beside them, made like those of every other tile, so that a token's score does not
    depend on where it lies. The exponent of the last tile follows its largest key while the tile fills.

    Rows on another device than the CPU have copies in DRAM, of which the scoring keys are made, and which go to the log
    when their time comes: nothing waits for the device then. No budget counts these.

    copy   makes the scoring keys; None: there are none, or not before there is one (``recast``)
    """

    def __init__(self, geometry: Geometry, capacity_tiles: int, copy: ScoringCopy | None, device: torch.device) -> None:
        tokens = capacity_tiles * TILE
        self._geometry, self._copy = geometry, copy
        # One more than it holds: the row of the step that finds it full (``in_place``).
        self._in_dram = self._rows = reserve(tokens + 1, geometry.row_stride, geometry.dtype)
        if device.type != "cpu":
            self._rows = torch.zeros(tokens, geometry.row_stride, dtype=geometry.dtype, device=device)
        self._bytes = self._rows.view(torch.uint8).numpy() if device.type == "cpu" else None
        self._floats = self._in_dram.numpy() if geometry.dtype == torch.float32 else None
        nbytes = tile_bytes(geometry.kv_heads, geometry.scored_dim, geometry.key_format)
        self._tiles: Tiles = reserve(capacity_tiles, nbytes, torch.uint8).numpy()
        self._exponents = np.zeros((capacity_tiles, geometry.kv_heads), np.int8)
        self.lowest = np.full(geometry.kv_heads, 15, np.int8)
        """The smallest exponent that any scoring key here has had, int8 [H]."""
        self.capacity = tokens
        self.first = 0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes of the rows held and of their scoring keys."""
        scoring = 0 if self._copy is None else self._geometry.score_key_bytes
        return self._length * (self._geometry.row_bytes + scoring)

    @property
    def rows(self) -> torch.Tensor:
        """Rows [len, row_stride] in order, a view."""
        return self._rows[: self._length]

    @property
    def in_dram(self) -> torch.Tensor:
        """The same rows, or their copies, in DRAM, a view."""
        return self._in_dram[: self._length]

    @property
    def on_cpu(self) -> bool:
        return self._bytes is not None

    @property
    def in_place(self) -> tuple[npt.NDArray[np.uint8], Tiles, npt.NDArray[np.int8]]:
        """Memory of all rows, one more than there may be, and of their scoring keys and exponents; if ``on_cpu``."""
        assert self._bytes is not None, "rows on another device are not read in place"
        return self._bytes, self._tiles, self._exponents

    @property
    def tiles(self) -> Tiles:
        """Scoring keys of all rows; those behind the last row have no meaning. A view."""
        return self._tiles[: -(-self._length // TILE)]

    @property
    def exponents(self) -> npt.NDArray[np.int8]:
        """Exponents int8 [tiles, H], a view."""
        return self._exponents[: -(-self._length // TILE)]

    @property
    def beyond(self) -> torch.Tensor:
        """The row [1, row_stride] that was written in place while this was full, a view."""
        return self._rows[self.capacity : self.capacity + 1]

    @property
    def full(self) -> bool:
        return self._length == self.capacity

    def append(self, rows: torch.Tensor, in_dram: torch.Tensor | None = None) -> None:
        """Add rows [n, row_stride] behind those held; there must be room.

        in_dram   the same rows in DRAM, where they have been brought there already
        """
        count = rows.shape[0]
        if not count:
            return
        start, stop = self._length, self._length + count
        assert stop <= self.capacity
        self._rows[start:stop] = rows
        if not self.on_cpu:
            self._in_dram[start:stop] = rows.cpu() if in_dram is None else in_dram
        self._length = stop
        if self._copy is not None and (count > 1 or not self._cast_newest(self._copy)):
            self._cast(self._copy, start // TILE)

    def took(self, *, cast: bool) -> None:
        """The next token's row has been written in place; ``cast``: its scoring key, too."""
        self._length += 1
        if not cast and self._copy is not None and not self._cast_newest(self._copy):
            self._cast(self._copy, (self._length - 1) // TILE)

    def recast(self, copy: ScoringCopy) -> None:
        """Make all scoring keys (again) by another copy."""
        self._copy = copy
        self.lowest = np.full_like(self.lowest, 15)
        if self._length:
            self._cast(copy, 0)

    def restart(self, first: int) -> None:
        """Forget what is held; the next token appended is ``first``."""
        self.first = first
        self._length = 0

    def drop(self, tiles: int) -> None:
        """Forget the oldest whole tiles."""
        tokens, rest = tiles * TILE, self._length - tiles * TILE
        for held in (self._rows,) if self.on_cpu else (self._rows, self._in_dram):
            held[:rest] = held[tokens : self._length].clone()
        kept = -(-rest // TILE)
        self._tiles[:kept] = self._tiles[tiles : tiles + kept].copy()
        self._exponents[:kept] = self._exponents[tiles : tiles + kept].copy()
        self.first += tokens
        self._length = rest

    def _cast_newest(self, copy: ScoringCopy) -> bool:
        """Cast the newest key with the exponents of its tile; False where they are not those it needs."""
        tile, place = divmod(self._length - 1, TILE)
        if not place:
            return False
        heads, dim = self._geometry.kv_heads, self._geometry.head_dim
        if self._floats is not None:
            key = self._floats[self._length - 1, : heads * dim]
        else:
            key = self._in_dram[self._length - 1, : heads * dim].float().numpy()
        key, exponents, place = key.reshape(heads, dim), self._exponents[tile], self._length - 1
        if isinstance(copy, Int8Copy):
            return _native.pack_with(key, exponents, LIMITS["int8"], self._tiles, place)
        integers = copy.cast_newest(torch.from_numpy(key), exponents)
        if integers is None:
            return False
        _native.pack_keys(integers[None], self._tiles, place, self._geometry.key_format)
        return True

    def _cast(self, copy: ScoringCopy, tile: int) -> None:
        """(Re)make the scoring keys of the last tiles, from ``tile`` on."""
        start = tile * TILE
        keys, _ = self._geometry.unpack_rows(self._in_dram[start : self._length])
        cast = copy.cast(keys)
        _native.pack_keys(cast.integers, self._tiles, start, self._geometry.key_format)
        self._exponents[tile : tile + len(cast.exponents)] = cast.exponents
        self.lowest = np.minimum(self.lowest, cast.exponents.min(0))
