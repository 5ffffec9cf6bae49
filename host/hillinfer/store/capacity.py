"""What one stream (a layer's sequence) may hold in DRAM, from the budget of all of them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import psutil

from hillinfer.config import Budget
from hillinfer.errors import MemoryBudgetError
from hillinfer.kv.geometry import TILE, Geometry

_SHORT = 1024  # tokens: below, a share of the KV may be less than a working set, and both are next to nothing


@dataclass(frozen=True)
class Room:
    """Of one stream: rows in the hot pool, tiles scored by the host, and how many newest tokens are pinned."""

    rows: int
    host_tiles: int
    pinned: int


@dataclass(frozen=True)
class Capacity:
    """The hot budget shared out. A share of the KV cache grows with it, a number of bytes does not.

    pinned   newest tokens to pin, as a function of the context length: at most half of the pool
    """

    geometry: Geometry
    sequences: int
    hot: Budget
    device: Budget | None
    pinned: Callable[[int], int]

    def room(self, tokens: int) -> Room:
        """With ``tokens`` tokens in the stream."""
        geometry, streams = self.geometry, self.geometry.layers * self.sequences
        nbytes = self.hot.resolve(geometry.kv_bytes(tokens, self.sequences)) // streams
        pinned = min(self.pinned(tokens), nbytes // geometry.row_bytes // 2)
        host_tiles = pinned // TILE
        rows = (nbytes - host_tiles * TILE * geometry.score_key_bytes) // geometry.row_bytes
        return Room(rows, host_tiles, pinned)

    def device_tiles(self, tokens: int) -> int:
        """Tiles of a stream's device tier."""
        if self.device is None:
            return 2
        geometry, streams = self.geometry, self.geometry.layers * self.sequences
        nbytes = self.device.resolve(geometry.kv_bytes(tokens, self.sequences))
        return nbytes // (streams * TILE * geometry.row_bytes)

    def check(self, tokens: int, selected: int) -> None:
        """MemoryBudgetError unless ``tokens`` per sequence, ``selected`` of them brought together, fit the budgets."""
        geometry, streams = self.geometry, self.geometry.layers * self.sequences
        whole = geometry.kv_bytes(tokens, self.sequences)
        tile = TILE * geometry.row_bytes
        if self.device is not None and self.device_tiles(tokens) < 1:
            raise MemoryBudgetError(
                f"device_bytes of {self.device} is too small: the newest {TILE} tokens of {geometry.layers} layers "
                f"and {self.sequences} sequences need at least {streams * tile} bytes (--device-bytes {streams * tile})"
            )
        hot = self.hot.resolve(whole)
        least = min(selected * geometry.row_bytes, whole)
        fixed = self.hot.nbytes is not None
        if hot < least and (fixed or tokens > _SHORT):
            raise MemoryBudgetError(
                f"hot_bytes of {self.hot} is {hot} bytes, too small for one layer's working set of {selected} tokens: "
                f"the least that works here is {least} bytes (--hot-bytes {least})"
            )
        memory = psutil.virtual_memory().total
        used = min(hot, whole) if self.hot.share is not None else hot
        if used > memory:
            raise MemoryBudgetError(
                f"hot_bytes of {self.hot} is {used / 1e9:.1f} GB and this machine has {memory / 1e9:.1f} GB: "
                "give less (--hot-bytes 20%)"
            )
