"""What one stream (a layer's sequence) may hold in DRAM, from the budget of all of them together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import psutil

from hillinfer.config import Budget
from hillinfer.errors import MemoryBudgetError
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.store.split import Split

_SHORT = 1024  # tokens: a shorter context is judged as if it had so many; its working set is next to nothing
_GUESTS = 0.15  # share of the pool (decision 18)
_DEVICE_TILES = 2  # of a stream, unless a budget says otherwise


@dataclass(frozen=True)
class Room:
    """Of one stream: rows in the hot pool, tiles scored by the host, and how many newest tokens are pinned.

    guests   how many of the rows are for tokens that were just read
    """

    rows: int
    guests: int
    host_tiles: int
    pinned: int


@dataclass(frozen=True)
class Capacity:
    """The hot budget shared out. A share of the KV cache grows with it, a number of bytes does not.

    device   bytes for the device tiers of all streams together; None: 128 tokens each
    pinned   newest tokens to pin, as a function of the context length: at most half of the pool
    scored   whether the host scores tiles, and keeps their scoring keys
    index    most bytes of the hot budget that a stream's index takes, as a function of the context length
    whole    layers that attend to everything at every step: up to half of the budget is theirs first
    history  whether rows stay because they are recent or were selected often; else all are guests
    split    how much of the scoring is the host's, as far as its memory goes
    """

    geometry: Geometry
    sequences: int
    hot: Budget
    device: int | None
    pinned: Callable[[int], int]
    scored: bool = True
    index: Callable[[int], int] | None = None
    whole: frozenset[int] = frozenset()
    history: bool = True
    split: Split = field(default_factory=Split)

    @property
    def _streams(self) -> int:
        return self.geometry.layers * self.sequences

    @property
    def _device_tile(self) -> int:
        """Bytes of a tile in the device tier: its rows and their scoring keys, where they have any."""
        return TILE * (self.geometry.row_bytes + (self.geometry.score_key_bytes if self.scored else 0))

    def _index_bytes(self, tokens: int) -> int:
        return 0 if self.index is None else self.index(tokens)

    def _share(self, tokens: int, layer: int) -> int:
        """Bytes of the hot budget for one stream of ``layer``, with ``tokens`` tokens in it."""
        hot = self.hot.resolve(self.geometry.kv_bytes(tokens, self.sequences))
        whole = len(self.whole) * self.sequences
        others = self._streams - whole
        if not whole or not others:
            return hot // self._streams
        most = max(hot // (2 * whole), hot // self._streams)
        needed = min(tokens * self.geometry.row_bytes, most)
        if layer in self.whole:
            return needed
        # What a budget in bytes has set aside stays so: no pool has to shrink because another grows.
        return (hot - whole * (needed if self.hot.share is not None else most)) // others

    def room(self, tokens: int, layer: int = 0, held: int | None = None) -> Room:
        """Of a stream of ``layer`` with ``tokens`` tokens.

        held   tiles the host scores now: rows get the room of those it may still take; None: it has them all
        """
        geometry = self.geometry
        nbytes = max(0, self._share(tokens, layer) - self._index_bytes(tokens))
        pinned = min(self.pinned(tokens), nbytes // geometry.row_bytes // 2) if self.history else 0
        host_tiles = self._host_tiles(tokens, nbytes, pinned) if self.scored else 0
        held = host_tiles if held is None else min(held, host_tiles)
        rows = (nbytes - held * TILE * geometry.score_key_bytes) // geometry.row_bytes
        guests = int(rows * (_GUESTS if self.history else 1)) if rows < tokens else 0
        return Room(rows, guests, host_tiles, pinned)

    def _host_tiles(self, tokens: int, nbytes: int, pinned: int) -> int:
        """Tiles the host scores of a stream with ``tokens`` tokens and ``nbytes`` of the budget.

        Their rows would fit into the budget: M_c ≤ M_0. Where all rows do, these come first, and keys get the rest.
        """
        geometry, wanted = self.geometry, pinned // TILE
        if self.split.host is not None:  # the device tier's tokens are the host's in any case: half a tier on average
            wanted = max(0, int(self.split.host * tokens) - self.device_tiles * TILE // 2) // TILE
        most, rest = nbytes // (TILE * geometry.row_bytes), nbytes - tokens * geometry.row_bytes
        return min(wanted, most if rest < 0 else rest // (TILE * geometry.score_key_bytes))

    def most_host_tiles(self, tokens: int, layer: int = 0) -> int:
        """Tiles that the host never exceeds of a stream of ``layer`` while it has up to ``tokens`` tokens."""
        most = min(self._share(tokens, layer) // self.geometry.row_bytes, tokens)
        return most // TILE + 1 if self.scored else 0

    def most_rows(self, tokens: int, layer: int = 0) -> int:
        """Rows that the pool of a stream of ``layer`` never exceeds while it has up to ``tokens`` tokens."""
        return min(self._share(tokens, layer) // self.geometry.row_bytes, tokens)

    @property
    def device_tiles(self) -> int:
        """Tiles of a stream's device tier."""
        return _DEVICE_TILES if self.device is None else self.device // (self._streams * self._device_tile)

    def check(self, tokens: int, selected: Callable[[int], int]) -> None:
        """MemoryBudgetError unless a context of ``tokens`` per sequence fits the budgets, and they the machine.

        selected   rows of a stream brought together at once, as a function of the context length
        """
        geometry, memory = self.geometry, psutil.virtual_memory().total
        if self.device_tiles < 1:
            least = self._streams * self._device_tile
            raise MemoryBudgetError(
                f"device_bytes of {self.device} is too small: the newest {TILE} tokens of {geometry.layers} layers "
                f"and {self.sequences} sequences need at least {least} bytes (--device-bytes {least})"
            )
        tokens = max(tokens, _SHORT)
        whole = geometry.kv_bytes(tokens, self.sequences)
        hot = self.hot.resolve(whole)
        index = self._streams * self._index_bytes(tokens)
        least = min(selected(tokens) * geometry.row_bytes, whole) + index
        if hot < least:
            beside = f" and {index} bytes of index" if index else ""
            raise MemoryBudgetError(
                f"hot_bytes of {self.hot} is {hot} bytes, too small for one layer's working set of "
                f"{selected(tokens)} tokens{beside}: the least that works here is {least} bytes (--hot-bytes {least})"
            )
        wanted = {"hot_bytes": hot if self.hot.share is None else min(hot, whole), "device_bytes": self.device or 0}
        for name, nbytes in wanted.items():
            if nbytes > memory:
                raise MemoryBudgetError(
                    f"{name} is {nbytes / 1e9:.1f} GB and this machine has {memory / 1e9:.1f} GB: "
                    f"give less (--{name.replace('_', '-')})"
                )
