"""The tiles that the host scores: their scoring keys, in DRAM, newest tiles first when room is short."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.scoring import Tiles, pack, tile_bytes
from hillinfer.store.reserve import reserve


class HostTiles:
    """INT8 keys of whole tiles, in the scanning layout.

    A tile that leaves is scored by the storage device, which has its keys anyway.

    Memory is a ring over tiles, so that the newest ones, as a rule consecutive, are scored in place.
    """

    def __init__(self, geometry: Geometry, reserve_tiles: int) -> None:
        self._size = reserve_tiles
        self._tile_bytes = tile_bytes(geometry.kv_heads, geometry.head_dim)
        self._keys: Tiles = reserve(reserve_tiles, self._tile_bytes, torch.uint8).numpy()
        self._exponents = np.zeros((reserve_tiles, geometry.kv_heads), np.int8)
        self.tiles: list[int] = []
        """Tiles the host scores, ascending."""
        self.changes = 0
        """How often that has changed."""

    def __len__(self) -> int:
        return len(self.tiles)

    @property
    def nbytes(self) -> int:
        """Bytes of the scoring keys held."""
        return len(self.tiles) * self._tile_bytes

    def add(self, first_tile: int, keys: ScoringKeys, capacity: int) -> None:
        """Take over new whole tiles, the newest of them if there are more than ``capacity``; older ones leave."""
        self.changes += 1
        count = len(keys.exponents)
        keep = min(count, capacity)
        oldest = first_tile + count - self._size  # what lies further back is overwritten
        self.tiles = [tile for tile in self.tiles if tile >= oldest]
        del self.tiles[: max(0, len(self.tiles) + keep - capacity)]
        packed = pack(keys.integers[(count - keep) * TILE :])
        for i in range(count - keep, count):
            slot = (first_tile + i) % self._size
            self._keys[slot] = packed[i - count + keep]
            self._exponents[slot] = keys.exponents[i]
            self.tiles.append(first_tile + i)

    def drop(self, leaving: list[int]) -> None:
        """Leave tiles to the storage device."""
        if leaving:
            self.changes += 1
            self.tiles = [tile for tile in self.tiles if tile not in leaving]

    def runs(self) -> list[tuple[int, Tiles, npt.NDArray[np.int8]]]:
        """Consecutive tiles that lie together: the first tile, views of their keys and of their exponents."""
        starts = [
            i for i, tile in enumerate(self.tiles) if i == 0 or tile != self.tiles[i - 1] + 1 or tile % self._size == 0
        ]
        views = []
        for start, stop in itertools.pairwise([*starts, len(self.tiles)]):
            slot = self.tiles[start] % self._size
            slots = slice(slot, slot + stop - start)
            views.append((self.tiles[start], self._keys[slots], self._exponents[slots]))
        return views
