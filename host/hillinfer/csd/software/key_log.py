"""The software device's own memory: the scoring copy of the keys, a file per layer read through the page cache.

The FPGA's DRAM has no counterpart in an ordinary PC but the memory that the system has to spare: a buffered file uses
it while it is there and gives it back when it is needed. What is read is checked tile by tile.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from hillinfer.csd.software.files import ColdFile
from hillinfer.errors import CorruptRecordError
from hillinfer.kv.column import Column
from hillinfer.kv.geometry import TILE
from hillinfer.kv.keys import ScoringKeys


class KeyLog:
    """Scoring keys of one layer: int8 [token][head][d] in a file; exponents and checksums of tiles in memory."""

    def __init__(self, layer: int, kv_heads: int, head_dim: int, region_tokens: int, folder: Path) -> None:
        self.layer = layer
        self.token_bytes = kv_heads * head_dim
        self._heads, self._dim = kv_heads, head_dim
        self._region = region_tokens * self.token_bytes
        self.file = ColdFile(folder, direct=False)
        self._exponents: dict[int, Column[np.int8]] = {}
        self._checksums: dict[int, list[int]] = {}
        self._lock = threading.Lock()

    def append(self, sequence: int, keys: ScoringKeys) -> None:
        """Add the keys of whole tiles behind those the sequence has."""
        data = np.ascontiguousarray(keys.integers).view(np.uint8).reshape(-1, TILE * self.token_bytes)
        exponents = self._exponents.setdefault(sequence, Column(np.int8, (self._heads,)))
        offset = sequence * self._region + len(exponents) * TILE * self.token_bytes
        self.file.write(data.reshape(-1), offset)
        with self._lock:
            self._checksums.setdefault(sequence, []).extend(xxhash.xxh3_64_intdigest(tile.data) for tile in data)
            exponents.append(keys.exponents)

    def read(self, sequence: int, first: int, count: int, buffer: npt.NDArray[np.uint8]) -> ScoringKeys:
        """Keys of tokens first…first + count − 1 (whole tiles) as a view of ``buffer``."""
        data = buffer[: count * self.token_bytes]
        got = self.file.read(data, sequence * self._region + first * self.token_bytes)
        tile, tiles = first // TILE, count // TILE
        with self._lock:
            expected = self._checksums[sequence][tile : tile + tiles]
            exponents = self._exponents[sequence].values[tile : tile + tiles]
        found = [xxhash.xxh3_64_intdigest(row.data) for row in data.reshape(tiles, -1)]
        if got < len(data) or found != expected:
            raise CorruptRecordError(
                f"the scoring copy of layer {self.layer}, sequence {sequence} is damaged within tokens "
                f"{first}-{first + count - 1}: check the disk, or use another cold folder (--cold-dir)"
            )
        return ScoringKeys(data.view(np.int8).reshape(count, self._heads, self._dim), exponents)

    def close(self) -> None:
        self.file.close()
