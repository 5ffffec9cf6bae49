"""The tiles that the host scores: their scoring keys, in DRAM."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.scoring import Tiles, pack, tile_bytes
from hillinfer.store.reserve import reserve

_SLACK = 4  # tiles of memory beyond those held, so that not every change closes the gaps
_PLACES = 4  # in which consecutive tiles may lie apart


class HostTiles:
    """Scoring keys of whole tiles, in the scanning layout. Which tiles these are is the stream's choice.

    A tile that leaves is scored by the storage device, which has its keys anyway. Tiles lie in ascending order but for
    those that came back late; gaps are closed once they would take a quarter of the memory, so that a long context
    touches no more than it holds, and neighbours are scored in one go.

    tiles   most tiles ever held
    """

    def __init__(self, geometry: Geometry, tiles: int) -> None:
        self._format = geometry.key_format
        self._tile_bytes = tile_bytes(geometry.kv_heads, geometry.scored_dim, self._format)
        size = tiles + tiles // 4 + _SLACK
        self._keys: Tiles = reserve(size, self._tile_bytes, torch.uint8).numpy()
        self._exponents = np.zeros((size, geometry.kv_heads), np.int8)
        self._slots: list[int] = []  # of each tile held
        self._end = 0  # slots from here on are free
        self.tiles: list[int] = []
        """Tiles the host scores, ascending."""
        self.changes = 0
        """How often they, or the places of their keys, have changed."""
        self._runs: list[tuple[int, Tiles, npt.NDArray[np.int8]]] | None = None

    def __len__(self) -> int:
        return len(self.tiles)

    @property
    def nbytes(self) -> int:
        """Bytes of the scoring keys held."""
        return len(self.tiles) * self._tile_bytes

    def add(self, first_tile: int, keys: ScoringKeys, fill: npt.NDArray[np.int16], capacity: int) -> None:
        """Take over new whole tiles, behind all those held; at most ``capacity`` stay in all.

        fill   as for ``by_claim``
        """
        count = len(keys.exponents)
        held = [*self.tiles, *range(first_tile, first_tile + count)]
        leaving = set(_leaving(held, fill, len(held) - capacity))
        self.drop([tile for tile in self.tiles if tile in leaving])
        staying = [i for i in range(count) if first_tile + i not in leaving]
        if not staying:
            return
        self._make_room(len(staying))
        self._change()
        packed = pack(keys.integers, self._format)
        for i in staying:
            self._keys[self._end] = packed[i]
            self._exponents[self._end] = keys.exponents[i]
            self.tiles.append(first_tile + i)
            self._slots.append(self._end)
            self._end += 1

    def shrink(self, fill: npt.NDArray[np.int16], capacity: int) -> None:
        """Leave tiles to the storage device until at most ``capacity`` are held."""
        self.drop(_leaving(self.tiles, fill, len(self.tiles) - capacity))

    def take_over(self, tile: int, keys: Tiles, exponents: npt.NDArray[np.int8]) -> None:
        """Score a tile of the storage device's: its keys [1, tile_bytes] and their exponents int8 [1, H]."""
        place = int(np.searchsorted(np.array(self.tiles, np.int64), tile))
        assert self.tiles[place : place + 1] != [tile]
        self._make_room(1)
        self._change()
        self._keys[self._end] = keys[0]
        self._exponents[self._end] = exponents[0]
        self.tiles.insert(place, tile)
        self._slots.insert(place, self._end)
        self._end += 1

    def drop(self, leaving: list[int]) -> None:
        """Leave tiles to the storage device."""
        if leaving:
            self._change()
            gone = set(leaving)
            kept = [(tile, slot) for tile, slot in zip(self.tiles, self._slots, strict=True) if tile not in gone]
            self.tiles, self._slots = [tile for tile, _ in kept], [slot for _, slot in kept]

    def runs(self) -> list[tuple[int, Tiles, npt.NDArray[np.int8]]]:
        """Consecutive tiles that lie together: the first tile, views of their keys and of their exponents."""
        if self._runs is not None:
            return self._runs
        views, start = [], 0
        for stop in range(1, len(self.tiles) + 1):
            if stop < len(self.tiles) and self._neighbours(stop):
                continue
            slots = slice(self._slots[start], self._slots[stop - 1] + 1)
            views.append((self.tiles[start], self._keys[slots], self._exponents[slots]))
            start = stop
        self._runs = views
        return views

    def _change(self) -> None:
        self.changes, self._runs = self.changes + 1, None

    def _neighbours(self, i: int) -> bool:
        return self.tiles[i] == self.tiles[i - 1] + 1 and self._slots[i] == self._slots[i - 1] + 1

    def tidy(self) -> None:
        """Put keys in order where consecutive tiles lie apart in too many places."""
        if len(self.runs()) <= _PLACES:
            return
        apart = sum(
            self.tiles[i] == self.tiles[i - 1] + 1 and not self._neighbours(i) for i in range(1, len(self.tiles))
        )
        if apart > _PLACES:
            self._put_in_order()

    def _put_in_order(self) -> None:
        held = len(self.tiles)
        self._keys[:held] = self._keys[self._slots]
        self._exponents[:held] = self._exponents[self._slots]
        self._slots, self._end = list(range(held)), held
        self._change()

    def _make_room(self, count: int) -> None:
        """Close the gaps where ``count`` more tiles would leave too many of them."""
        held = len(self.tiles)
        if self._end + count > held + count + (held + count) // 4 + _SLACK:
            self._put_in_order()
        assert self._end + count <= len(self._keys), "more tiles than memory was reserved for"


def by_claim(tiles: list[int], fill: npt.NDArray[np.int16]) -> list[int]:
    """Tiles in the order in which the host gives them up: those that are mostly cold before others, then the oldest.

    Beyond that it makes no difference how warm they are: neighbours are scored in one go, on either side.

    fill   int16 [tiles of the stream]: tokens of each that are in the hot pool
    """
    return sorted(tiles, key=lambda tile: (fill[tile] > TILE // 2, tile))


def _leaving(tiles: list[int], fill: npt.NDArray[np.int16], count: int) -> list[int]:
    return by_claim(tiles, fill)[:count] if count > 0 else []
