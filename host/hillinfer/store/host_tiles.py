"""The tiles that the host scores: their scoring keys, in DRAM, newest tiles first when room is short."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.store.reserve import reserve


class HostTiles:
    """INT8 keys of whole tiles. A tile that leaves is scored by the storage device, which has its keys anyway."""

    def __init__(self, geometry: Geometry, reserve_tiles: int) -> None:
        shape = (-1, TILE, geometry.kv_heads, geometry.head_dim)
        keys = reserve(reserve_tiles, TILE * geometry.score_key_bytes, torch.int8)
        self._keys: npt.NDArray[np.int8] = keys.numpy().reshape(shape) if reserve_tiles else np.empty(0, np.int8)
        self._exponents = np.zeros((reserve_tiles, geometry.kv_heads), np.int8)
        self._slots: dict[int, int] = {}  # tile → slot; ascending tiles, as they are added in order
        self._tile_bytes = TILE * geometry.score_key_bytes
        self._free = list(range(reserve_tiles - 1, -1, -1))

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def nbytes(self) -> int:
        """Bytes of the scoring keys held."""
        return len(self._slots) * self._tile_bytes

    @property
    def tiles(self) -> list[int]:
        """Tiles the host scores, ascending."""
        return list(self._slots)

    def add(self, first_tile: int, keys: ScoringKeys, capacity: int) -> None:
        """Take over new whole tiles, the newest of them if there are more than ``capacity``; older ones leave."""
        count = len(keys.exponents)
        keep = min(count, capacity)
        self.drop(self.tiles[: max(0, len(self._slots) + keep - capacity)])
        integers = keys.integers.reshape(count, TILE, *keys.integers.shape[1:])
        for i in range(count - keep, count):
            slot = self._free.pop()
            self._keys[slot] = integers[i]
            self._exponents[slot] = keys.exponents[i]
            self._slots[first_tile + i] = slot

    def drop(self, tiles: list[int]) -> None:
        """Leave tiles to the storage device."""
        for tile in tiles:
            self._free.append(self._slots.pop(tile))

    def chunks(self, most: int) -> list[tuple[list[int], ScoringKeys]]:
        """The tiles in groups of at most ``most``, each with its keys, for scoring."""
        items = list(self._slots.items())
        groups = [items[i : i + most] for i in range(0, len(items), most)]
        return [([tile for tile, _ in group], self._gather([slot for _, slot in group])) for group in groups]

    def _gather(self, slots: list[int]) -> ScoringKeys:
        first = slots[0]
        adjacent = slots == list(range(first, first + len(slots)))
        index = slice(first, first + len(slots)) if adjacent else slots
        keys = self._keys[index]
        return ScoringKeys(keys.reshape(-1, *keys.shape[2:]), self._exponents[index])
