"""The software device's own memory: the scoring copy of the keys, as the FPGA has it in its DRAM, scanned in place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.csd.contract import KeyRun, Run
from hillinfer.kv.geometry import TILE
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.scoring import Tiles, pack, tile_bytes
from hillinfer.store.reserve import LargePages, reserve


class KeyMemory:
    """Scoring keys of one stream in the scanning layout. What is in it never moves.

    region_tokens   most tokens it may ever hold: address space is reserved for them, memory taken as they come
    """

    def __init__(self, kv_heads: int, head_dim: int, key_format: str, region_tokens: int) -> None:
        most = region_tokens // TILE
        nbytes, self._format = tile_bytes(kv_heads, head_dim, key_format), key_format
        self._tiles: Tiles = reserve(most, nbytes, torch.uint8).numpy()
        self._exponents: npt.NDArray[np.int8] = reserve(most, kv_heads, torch.int8).numpy()
        self._pages = LargePages(self._tiles)
        self.bytes_per_token = nbytes // TILE
        self._held = 0

    @property
    def tokens(self) -> int:
        """Tokens held."""
        return self._held * TILE

    def put(self, first: int, keys: ScoringKeys) -> None:
        """Keep the keys of whole tiles, behind those held or in their place; ``first`` is a token's position."""
        start = first // TILE
        stop = start + len(keys.exponents)
        self._tiles[start:stop] = pack(keys.integers, self._format)
        self._exponents[start:stop] = keys.exponents
        self._held = max(self._held, stop)
        self._pages.filled(self.tokens * self.bytes_per_token)

    def runs(self, runs: Sequence[Run]) -> list[KeyRun]:
        """Where the keys of ``runs`` lie."""
        found = []
        for first, tokens in runs:
            tiles = slice(first // TILE, (first + tokens) // TILE)
            found.append((first, tokens, self._tiles[tiles], self._exponents[tiles]))
        return found
