"""The tiles that the host scores: their scoring keys, in DRAM, newest tiles first when room is short."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.store.reserve import reserve


class HostTiles:
    """INT8 keys of whole tiles. A tile that leaves is scored by the storage device, which has its keys anyway.

    Memory is a ring over tiles, so that the newest ones, as a rule consecutive, are scored in place.
    """

    def __init__(self, geometry: Geometry, reserve_tiles: int) -> None:
        self._size = reserve_tiles
        self._tile_bytes = TILE * geometry.score_key_bytes
        keys = reserve(reserve_tiles, self._tile_bytes, torch.int8).numpy()
        self._keys: npt.NDArray[np.int8] = keys.reshape(-1, TILE, geometry.kv_heads, geometry.head_dim)
        self._exponents = np.zeros((reserve_tiles, geometry.kv_heads), np.int8)
        self.tiles: list[int] = []
        """Tiles the host scores, ascending."""

    def __len__(self) -> int:
        return len(self.tiles)

    @property
    def nbytes(self) -> int:
        """Bytes of the scoring keys held."""
        return len(self.tiles) * self._tile_bytes

    def add(self, first_tile: int, keys: ScoringKeys, capacity: int) -> None:
        """Take over new whole tiles, the newest of them if there are more than ``capacity``; older ones leave."""
        count = len(keys.exponents)
        keep = min(count, capacity)
        oldest = first_tile + count - self._size  # what lies further back is overwritten
        self.tiles = [tile for tile in self.tiles if tile >= oldest]
        del self.tiles[: max(0, len(self.tiles) + keep - capacity)]
        integers = keys.integers.reshape(count, TILE, *keys.integers.shape[1:])
        for i in range(count - keep, count):
            slot = (first_tile + i) % self._size
            self._keys[slot] = integers[i]
            self._exponents[slot] = keys.exponents[i]
            self.tiles.append(first_tile + i)

    def drop(self, leaving: list[int]) -> None:
        """Leave tiles to the storage device."""
        if leaving:
            self.tiles = [tile for tile in self.tiles if tile not in leaving]

    def chunks(self, most: int) -> list[tuple[list[int], ScoringKeys]]:
        """The tiles in runs of at most ``most``, each with a view of its keys, for scoring."""
        runs: list[list[int]] = []
        for tile in self.tiles:
            if runs and tile == runs[-1][-1] + 1 and len(runs[-1]) < most and tile % self._size:
                runs[-1].append(tile)
            else:
                runs.append([tile])
        return [(run, self._view(run[0] % self._size, len(run))) for run in runs]

    def _view(self, slot: int, count: int) -> ScoringKeys:
        keys = self._keys[slot : slot + count]
        return ScoringKeys(keys.reshape(-1, *keys.shape[2:]), self._exponents[slot : slot + count])
