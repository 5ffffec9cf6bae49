"""The software device's own memory: the scoring copy of the keys, a file per layer read through the page cache.

The FPGA's DRAM has no counterpart in an ordinary PC but the memory that the system has to spare: a buffered file uses
it while it is there and gives it back when it is needed. What is read is checked tile by tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hillinfer import _native
from hillinfer.csd.cold.files import ColdFile
from hillinfer.csd.contract import Run
from hillinfer.kv.column import Column
from hillinfer.kv.geometry import TILE
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.scoring import pack, tile_bytes


class KeyLog:
    """Scoring keys of one layer: tiles in the scanning layout in a file; their exponents and checksums in memory."""

    def __init__(self, kv_heads: int, head_dim: int, region_tokens: int, folder: Path) -> None:
        self._heads = kv_heads
        self._tile_bytes = tile_bytes(kv_heads, head_dim)
        self._region = region_tokens // TILE * self._tile_bytes
        self.file = ColdFile(folder, direct=False)
        self._exponents: dict[int, Column[np.int8]] = {}
        self._checksums: dict[int, Column[np.uint32]] = {}

    def length(self, sequence: int) -> int:
        """Tokens of a sequence in the log."""
        return len(self._exponents.get(sequence, ())) * TILE

    def append(self, sequence: int, keys: ScoringKeys) -> None:
        """Add the keys of whole tiles behind those the sequence has."""
        tiles = pack(keys.integers)
        exponents = self._exponents.setdefault(sequence, Column(np.int8, (self._heads,)))
        offset = sequence * self._region + len(exponents) * self._tile_bytes
        self.file.write(tiles.reshape(-1), offset)
        self._checksums.setdefault(sequence, Column(np.uint32)).append(_native.checksums(tiles))
        exponents.append(keys.exponents)

    def launch(self, sequence: int, query: QuantisedQuery, runs: Sequence[Run], tag: int) -> _native.Launch:
        """A scan of ``runs``, to be submitted to the scoring thread."""
        return _native.Launch(query.native, self.file.fd, [self._run(sequence, *run) for run in runs], tag, -32768)

    def _run(self, sequence: int, first: int, tokens: int) -> _native.RunArguments:
        tiles = slice(first // TILE, (first + tokens) // TILE)
        offset = sequence * self._region + tiles.start * self._tile_bytes
        return first, tokens, offset, self._exponents[sequence].values[tiles], self._checksums[sequence].values[tiles]

    def close(self) -> None:
        self.file.close()
