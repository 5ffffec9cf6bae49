"""All tokens of one layer and sequence, whichever tier they are in."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch

from hillinfer import _native
from hillinfer.csd.contract import Device, KeyRun, ReadTicket, Run, Stream
from hillinfer.errors import ColdPoolError
from hillinfer.kv.copies import CopyKind, KeyMoments, ScoringCopy
from hillinfer.kv.copies.int8 import Int8Copy
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import LIMITS
from hillinfer.kv.row_attention import ELEMENTS
from hillinfer.kv.scoring import Tiles, pack
from hillinfer.store.capacity import Capacity, Room
from hillinfer.store.device_tier import DeviceTier
from hillinfer.store.host_tiles import HostTiles, by_claim
from hillinfer.store.hot_pool import HotPool
from hillinfer.store.ledger import Ledger
from hillinfer.store.placement import Placement
from hillinfer.store.reserve import reserve
from hillinfer.store.row_buffers import RowBuffers
from hillinfer.store.staging import Staged, StagedRead

Positions = npt.NDArray[np.int64]
_T = TypeVar("_T")

_TAKEN = 16  # tiles that the host takes over at most per step, where that is a copy in memory
_MOVES = 50  # a step moves at most 1/50 of the pool: a change of topic must not flood the disk that also serves reads
_SAMPLE_TILES = 64  # of 64 tokens each: a scoring copy fitted to more is no better
_PIECE_BYTES = 4 << 20  # of rows brought together for exact attention at a time


def _make_pieces(geometry: Geometry) -> tuple[torch.Tensor, torch.Tensor]:
    """Memory for two pieces of rows, one being read while the other is attended; shared by all streams."""
    rows = max(TILE, _PIECE_BYTES // geometry.row_bytes // TILE * TILE)
    return reserve(rows, geometry.row_stride, geometry.dtype), reserve(rows, geometry.row_stride, geometry.dtype)


def _one_ahead(started: Iterator[_T]) -> Iterator[_T]:
    """Each of what is started, once the next one is started too."""
    coming = next(started, None)
    while coming is not None:
        following = next(started, None)
        yield coming
        coming = following


def _run(tile: int, keys: Tiles, exponents: npt.NDArray[np.int8]) -> KeyRun:
    return tile * TILE, len(keys) * TILE, keys, exponents


@dataclass
class Selection:
    """Where the rows of selected tokens are, and those of the cold pool on their way.

    hot, newest            rows of the hot pool and of the device tier, int64 each
    cold                   positions that are read from the cold pool, int64 [m]
    cold_rows              [m, row_stride]: their rows, after ``wait``
    hot_ranks, cold_ranks  which of the selected tokens these are, int64 each; the newest come last
    lent                   cold_rows are memory of the stream's, and go back to it when the selection is settled
    started                when the cold ones were asked for, seconds of time.perf_counter
    ahead                  when some of them began to be read ahead of that; None: none was
    """

    hot: Positions
    newest: Positions
    cold: Positions
    cold_rows: torch.Tensor
    hot_ranks: Positions
    cold_ranks: Positions
    _ticket: ReadTicket | None
    lent: bool = False
    started: float = field(default_factory=time.perf_counter)
    ahead: float | None = field(init=False)

    def __post_init__(self) -> None:
        self.ahead = self._ticket.started if isinstance(self._ticket, StagedRead) else None

    def count(self, ledger: Ledger, geometry: Geometry) -> None:
        """Tell the ledger where the rows come from."""
        ledger.step(hot=len(self.hot), cold=len(self.cold), cold_bytes=len(self.cold) * geometry.row_bytes)

    @property
    def ticket(self) -> ReadTicket | None:
        """The read that brings the cold ones; None: there is none, or it was waited for."""
        return self._ticket

    def wait(self) -> torch.Tensor:
        """The cold rows; raises what went wrong in the cold pool."""
        if self._ticket is not None:
            self._ticket.wait()
            self._ticket = None
        return self.cold_rows


@dataclass
class Fetch:
    """Rows on their way: ``rows`` [k, row_stride] in the order asked for, complete after ``wait``.

    located   where they were found
    """

    rows: torch.Tensor
    located: Selection

    def wait(self) -> torch.Tensor:
        """The rows, with what the cold pool returned in place; raises what went wrong there."""
        cold_rows = self.located.wait()
        if len(cold_rows) < len(self.rows):  # else they were read to their place
            self.rows.index_copy_(0, torch.from_numpy(self.located.cold_ranks), cold_rows)
        return self.rows


class TokenStream:
    """Tiers of one stream: [0, stored) is in the log (and partly in the hot pool), [stored, length) on the device.

    A token is written once, when its tile leaves the device tier. From then on the hot pool holds a copy or not.
    """

    def __init__(
        self,
        stream: Stream,
        geometry: Geometry,
        csd: Device,
        capacity: Capacity,
        ledger: Ledger,
        *,
        reserve_tokens: int,
        copies: dict[Stream, ScoringCopy],
        device: torch.device,
        pieces: tuple[torch.Tensor, torch.Tensor],
        buffers: RowBuffers,
    ) -> None:
        """``copies``: the scoring copy of every stream that has one; this one's is put there once it is fitted."""
        self._pieces, self._buffers = pieces, buffers
        self.id, self.geometry, self._csd = stream, geometry, csd
        self._capacity, self._ledger = capacity, ledger
        self._copies = copies
        self.fitted_at = 0
        """Tokens of the stream when its copy was fitted."""
        self.device_tier = DeviceTier(geometry, max(1, capacity.device_tiles), self.copy, device)
        self.hot_pool = HotPool(geometry, capacity.most_rows(reserve_tokens, stream.layer))
        self.host_tiles = HostTiles(geometry, capacity.most_host_tiles(reserve_tokens, stream.layer))
        self.placement = Placement()
        self._lowest = np.full(geometry.kv_heads, 15, np.int8)
        self._lowest_of = self._lowest, self._lowest, self._lowest  # what the last one was made of, and it
        self._context = 0  # tokens of the stream, with those just coming in
        self._counted = (0, 0, 0)
        self._staged: Staged | None = None
        self._coming: tuple[int, Fetch] | None = None  # a tile that the host takes over, its rows on their way
        self._may_read = True  # for that
        self.no_rows = torch.empty(0, geometry.row_stride, dtype=geometry.dtype)
        self._casts = isinstance(self.copy, Int8Copy) and geometry.dtype == torch.float32  # which is done in place
        self._token_bytes = geometry.row_bytes + geometry.score_key_bytes  # of the newest ones
        self._tiers: _native.Tiers | None = None
        self._tiers_of = (-1, -1)  # tokens stored, and changes of the host's tiles, when ``_tiers`` was made
        self.scored_by_device = (0, 0)
        """Tokens, and runs of them, that are the storage device's to score; as of ``tiers``."""

    @property
    def copy(self) -> ScoringCopy | None:
        """How scoring keys are made; None: it is still to be fitted, until when there are none."""
        return self._copies.get(self.id)

    @property
    def stored(self) -> int:
        """Tokens in the log."""
        return self.device_tier.first

    @property
    def read_in_place(self) -> bool:
        """Whether native code can read the rows in memory as they are."""
        return self.device_tier.on_cpu and self.geometry.dtype in ELEMENTS

    @property
    def length(self) -> int:
        """Tokens in all tiers."""
        return self.device_tier.first + len(self.device_tier)

    @property
    def lowest_exponent(self) -> npt.NDArray[np.int8]:
        """The smallest exponent of any scoring key, int8 [H]."""
        stored, newest, lowest = self._lowest_of
        if stored is not self._lowest or newest is not self.device_tier.lowest:  # new arrays when they have changed
            stored, newest = self._lowest, self.device_tier.lowest
            lowest = np.minimum(stored, newest)
            self._lowest_of = stored, newest, lowest
        return lowest

    # ---- tokens coming in

    def append(self, rows: torch.Tensor, in_dram: torch.Tensor | None = None) -> None:
        """Add generated tokens, rows [n, row_stride]: they stay on the device as long as there is room.

        in_dram   the same rows in DRAM, where they have been brought there already
        """
        self._staged = None  # the step it was read for is over
        count = rows.shape[0]  # (asking a tensor for its len takes longer than all of this)
        self._context = self.length + count
        for i in range(count):
            if self.device_tier.full:
                moved = self._store(self.device_tier.in_dram[:TILE])
                self.device_tier.drop(1)
                self._ledger.moved(moved, 0, step=False)
            self.device_tier.append(rows[i : i + 1], None if in_dram is None else in_dram[i : i + 1])
        self.placement.extend(self.length)
        self._account()

    def took(self, tiers: _native.Tiers) -> None:
        """Add the generated token whose row a step has written in place."""
        tier = self.device_tier
        if tier.full:
            self.append(tier.beyond.clone())
            return
        self._staged = None
        self._context = self.length + 1
        tier.took(cast=self._casts and tiers.cast(len(tier), LIMITS["int8"]))
        self.placement.extend(self._context)
        device, hot, cold = self._counted
        self._counted = device + self._token_bytes, hot, cold
        self._ledger.change(device=self._token_bytes)

    def append_chunk(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Add a part of a prompt, keys and values [H, n, d].

        They go straight into the log, tile by tile, with what waited in the device tier; the rest waits there.
        """
        self._staged = None
        self._context = self.length + keys.shape[1]
        rows = self.geometry.pack_rows(keys, values, before=len(self.device_tier))
        rows[: len(self.device_tier)] = self.device_tier.rows
        whole = len(rows) // TILE * TILE
        if whole:
            self._store(rows[:whole])
        self.device_tier.restart(self.stored + whole)
        self.device_tier.append(rows[whole:])
        self.placement.extend(self.length)
        self._account()

    def _store(self, rows: torch.Tensor) -> int:
        """Write whole tiles [n, row_stride] to the log; returns how many of their rows the hot pool keeps."""
        rows = rows.cpu()
        keys = None if self.copy is None else self.copy.cast(self.geometry.unpack_rows(rows)[0])
        first = self.hot_pool.tokens
        tokens = first + len(rows)
        self._csd.append(self.id, first, rows.view(torch.uint8).numpy(), keys)
        self.hot_pool.extend(tokens)
        self.placement.extend(tokens)
        room = self._capacity.room(self._context, self.id.layer, len(self.host_tiles) + len(rows) // TILE)
        keep = min(len(rows), room.rows - room.guests)
        self._make_room(keep, room)
        self.hot_pool.insert(np.arange(tokens - keep, tokens), rows[len(rows) - keep :])
        if keys is not None:
            self._lowest = np.minimum(self._lowest, keys.exponents.min(0))
            self.host_tiles.add(first // TILE, keys, self.hot_pool.tile_fill, room.host_tiles)
        return keep

    @property
    def _room(self) -> Room:
        """What this stream may hold at its present length."""
        return self._capacity.room(self._context, self.id.layer, len(self.host_tiles))

    def _make_room(self, count: int, room: Room) -> None:
        """Forget the coldest tokens, so that ``count`` more fit as residents."""
        pool = self.hot_pool
        residents = pool.positions()
        surplus = len(residents) + count - (room.rows - room.guests)
        pool.evict(self.placement.coldest(residents, surplus, self._context - room.pinned))
        pool.evict(pool.longest_unused(max(0, pool.guests - room.guests)))

    # ---- tokens going out

    def pieces(self, *, count: bool = False) -> Iterator[torch.Tensor]:
        """Every row in order of position, [n, row_stride] at a time; the next piece is read while one is used.

        Where pieces begin does not depend on the tiers, so that what is summed over them does not either.

        count   the ledger counts them as selected by a step
        """
        for fetch in _one_ahead(self.fetch(positions, out=place) for positions, place in self._cut()):
            if count:
                fetch.located.count(self._ledger, self.geometry)
            yield fetch.wait()

    def parts(self, *, count: bool = False) -> Iterator[Selection]:
        """Where every row is, in order of position and by the same pieces: what is in memory is not copied."""
        for located in _one_ahead(self.locate(positions, place) for positions, place in self._cut()):
            if count:
                located.count(self._ledger, self.geometry)
            yield located

    def _cut(self) -> Iterator[tuple[Positions, torch.Tensor]]:
        """Positions of each piece, and memory for its rows; that of every other piece is the same."""
        size = len(self._pieces[0])
        for i, first in enumerate(range(0, self.length, size)):
            positions = np.arange(first, min(first + size, self.length))
            yield positions, self._pieces[i % 2][: len(positions)]

    def locate(self, positions: Positions, place: torch.Tensor | None = None) -> Selection:
        """Find the rows of ascending positions, and start reading those that are in the cold pool only.

        place   memory [k, row_stride] for the rows in order: used if all of them are cold
        """
        stored = int(np.searchsorted(positions, self.stored))
        slots = self.hot_pool.slot_of[positions[:stored]]
        is_hot = slots >= 0
        hot, cold = np.flatnonzero(is_hot), np.flatnonzero(~is_hot)
        missing = positions[cold]
        lent = place is None and len(missing) > 0
        if lent:
            place = self._buffers.take(len(missing))
        elif place is None or len(missing) < len(positions):  # memory of their own, from which they may be promoted
            place = torch.empty(len(missing), self.geometry.row_stride, dtype=self.geometry.dtype)
        ticket = self._read(missing, place) if len(missing) else None
        newest = positions[stored:] - self.stored
        return Selection(slots[hot].astype(np.int64), newest, missing, place, hot, cold, ticket, lent)

    def stage(self, positions: Positions) -> None:
        """Start reading those of ascending positions that are in the cold pool only: the coming step may ask for them.

        It gets them without a change of anything else (hillinfer.store.staging); what it does not ask for is given up.
        """
        stored = positions[: int(np.searchsorted(positions, self.stored))]
        cold = stored[self.hot_pool.slot_of[stored] < 0]
        self._ledger.ahead_rows += len(cold)
        self._staged = Staged.start(self._csd, self.id, cold, self.geometry.row_bytes) if len(cold) else None

    def _read(self, positions: Positions, place: torch.Tensor) -> ReadTicket:
        """Start reading rows of the cold pool, or go on with those that are on their way already."""
        out, staged, self._staged = place.view(torch.uint8).numpy(), self._staged, None
        if staged is None:
            return self._csd.read(self.id, positions, out)
        read = StagedRead(self._csd, self.id, positions, out, staged)
        self._ledger.foreseen(hits=read.hits, rows=len(positions))
        return read

    def bring(self, positions: Positions) -> Fetch:
        """Start reading the rows of ascending positions that are in the cold pool only."""
        rows = self._buffers.take(len(positions))
        ticket = self._read(positions, rows)
        ranks = np.arange(len(positions))
        return Fetch(
            rows, Selection(positions[:0], positions[:0], positions, rows, ranks[:0], ranks, ticket, lent=True)
        )

    def fetch(self, positions: Positions, out: torch.Tensor | None = None) -> Fetch:
        """Start bringing the rows of ascending positions together, from whatever tier holds them.

        ``out`` is memory to use, if given.
        """
        if out is None:
            out = torch.empty(len(positions), self.geometry.row_stride, dtype=self.geometry.dtype)
        rows = out[: len(positions)]
        located = self.locate(positions, rows)
        if len(located.hot):
            hot_rows = self.hot_pool.rows.index_select(0, torch.from_numpy(located.hot))
            rows.index_copy_(0, torch.from_numpy(located.hot_ranks), hot_rows)
        if len(located.newest):
            newest = self.device_tier.in_dram.index_select(0, torch.from_numpy(located.newest))
            rows[len(rows) - len(newest) :] = newest
        return Fetch(rows, located)

    # ---- the scoring copy

    def fit(self, kind: CopyKind, queries: npt.NDArray[np.float64]) -> None:
        """Fit a scoring copy to the stream as it is, and make all scoring keys (again) by it.

        queries   float64 [H, n, d]: the last ones, of all G heads. What is fitted depends on them and on the stream's
                  tokens, not on where those lie or how they came.
        """
        geometry, moments = self.geometry, KeyMoments(self.geometry.kv_heads, self.geometry.head_dim)
        size = len(self._pieces[0])
        sample = self._sample()
        for first in range(0, len(sample), size):
            rows = self.fetch(sample[first : first + size], out=self._pieces[0]).wait()
            moments.add(geometry.unpack_rows(rows)[0])
        copy = self._copies[self.id] = kind.fit(moments, queries)
        self.fitted_at = self.length
        self._lowest = np.full_like(self._lowest, 15)
        self.host_tiles.drop(self.host_tiles.tiles)
        first, room = 0, self._capacity.room(self._context, self.id.layer, self.stored // TILE)
        self._make_room(0, room)
        for rows in self.pieces():
            rows = rows[: self.stored - first]
            if len(rows):
                keys = copy.cast(geometry.unpack_rows(rows)[0])
                self._csd.rekey(self.id, first, keys)
                self._lowest = np.minimum(self._lowest, keys.exponents.min(0))
                self.host_tiles.add(first // TILE, keys, self.hot_pool.tile_fill, room.host_tiles)
                first += len(rows)
        self.device_tier.recast(copy)
        self._account()

    def _sample(self) -> Positions:
        """Tokens whose keys stand for all: whole tiles, spread evenly."""
        tiles = self.length // TILE
        taken = min(tiles, _SAMPLE_TILES)
        if not taken:
            return np.arange(self.length)
        chosen = np.arange(taken) * tiles // taken
        positions: Positions = (chosen[:, None] * TILE + np.arange(TILE)).reshape(-1)
        return positions

    # ---- who scores what

    @property
    def newest_tiles(self) -> tuple[int, Tiles, npt.NDArray[np.int8]]:
        """The tiles of the device tier: the first one, their scoring keys, their exponents."""
        return self.stored // TILE, self.device_tier.tiles, self.device_tier.exponents

    def device_runs(self) -> list[Run]:
        """Runs of tiles the storage device scores: all stored ones that the host does not."""
        bounds = [(first, first + len(keys)) for first, keys, _ in self.host_tiles.runs()]
        runs, start = [], 0
        for first, end in [*bounds, (self.stored // TILE, 0)]:
            if first > start:
                runs.append(Run(start * TILE, (first - start) * TILE))
            start = end
        return runs

    def tiers(self) -> _native.Tiers | None:
        """Where all scoring keys and rows are; None unless all those keys are in this process's memory.

        They stay there until a tile is stored, or the host takes or leaves one.
        """
        state = self.device_tier.first, self.host_tiles.changes
        if state != self._tiers_of:
            self._tiers_of, runs = state, self.device_runs()
            self.scored_by_device = sum(run.tokens for run in runs), len(runs)
            theirs = self._csd.in_memory(self.id, runs) if runs else []
            ours = [_run(*tiles) for tiles in self.host_tiles.runs()]
            self._tiers = None if theirs is None else self._look(sorted([*theirs, *ours], key=lambda run: run[0]))
        return self._tiers

    def _look(self, keys: list[KeyRun]) -> _native.Tiers:
        geometry, pool = self.geometry, self.hot_pool
        size = geometry.kv_heads, geometry.group, geometry.head_dim
        element = ELEMENTS[geometry.dtype]
        return _native.Tiers(size, element, keys, pool.slot_of, pool.bytes, *self.device_tier.in_place)

    # ---- behind the step

    def settle_hot(self, step: _native.Step) -> None:
        """``settle`` where nothing was read and no guest can be among the selected: no token changes places."""
        self.placement.count_step(step)
        if self._capacity.split.host is not None or len(self.hot_pool) < self.stored:  # others may have left a tile
            self._share_tiles()
            self._account()
        self._ledger.moved(0, len(self.hot_pool), step=True)

    def settle(self, selected: Positions, located: Selection) -> None:
        """Count a step's selection; let tokens of it that are no residents trade places with colder ones that are.

        What was read and does not become a resident stays as a guest for a few steps: it is likely to be read again.
        """
        self.placement.count(selected)
        room, pool, cold = self._room, self.hot_pool, located.cold
        guests = pool.greet(located.hot)
        joined = self._join(cold, located, room.rows - room.guests - (len(pool) - pool.guests))
        rising = np.concatenate([cold[~joined], guests])
        most = max(1, len(pool) // _MOVES)
        swap = self.placement.swap(rising, pool.residents, self.length - room.pinned, most)
        is_guest = pool.slot_of[swap.promote] >= 0
        pool.trade(swap.demote[is_guest], swap.promote[is_guest])
        ranks = np.searchsorted(cold, swap.promote[~is_guest])
        pool.exchange(swap.demote[~is_guest], swap.promote[~is_guest], located.cold_rows, ranks)
        joined[ranks] = True
        self._receive(np.flatnonzero(~joined), located, min(room.guests, room.rows - (len(pool) - pool.guests)))
        if located.lent:
            self._buffers.give(located.cold_rows)
        self._share_tiles()
        self._ledger.moved(int(np.count_nonzero(joined)) + int(np.count_nonzero(is_guest)), len(pool), step=True)
        self._account()

    def _share_tiles(self) -> None:
        """Leave tiles to the storage device, or take some over, as the split has it."""
        fill, tiles = self.hot_pool.tile_fill, self.host_tiles
        if self._capacity.split.host is None:
            tiles.drop([tile for tile in tiles.tiles if fill[tile] <= TILE // 2])
            return
        wanted = self._room.host_tiles
        tiles.shrink(fill, wanted)
        if self._coming is not None:
            (tile, fetch), self._coming = self._coming, None
            if tile not in tiles.tiles and len(tiles) < wanted:
                self._take_read(tile, fetch)
        if len(tiles) < wanted:
            self._take_more(wanted - len(tiles))
        else:
            tiles.tidy()

    def _take_more(self, count: int) -> None:
        """Take over tiles: at once those whose keys are in memory; of others the rows are read, for the next step."""
        others = np.setdiff1d(np.arange(self.stored // TILE), self.host_tiles.tiles, assume_unique=True)
        tiles = by_claim(others.tolist(), self.hot_pool.tile_fill)[::-1][: min(count, _TAKEN)]
        if not tiles:
            return
        held = self._csd.in_memory(self.id, [Run(tile * TILE, TILE) for tile in tiles])
        if held is not None:
            self._make_room_for_tiles(len(tiles))
            for first, _, keys, exponents in held:
                self.host_tiles.take_over(first // TILE, keys, exponents)
        elif self._may_read:
            self._coming = tiles[0], self.fetch(np.arange(tiles[0] * TILE, (tiles[0] + 1) * TILE))

    def _take_read(self, tile: int, fetch: Fetch) -> None:
        try:
            rows = fetch.wait()
        except ColdPoolError:  # rows that no step may ever ask for: the device goes on scoring them
            self._may_read = False
            return
        assert self.copy is not None, "keys that are never scored have no tiles"
        self._make_room_for_tiles(1)
        keys = self.copy.cast(self.geometry.unpack_rows(rows)[0])
        self.host_tiles.take_over(tile, pack(keys.integers, self.geometry.key_format), keys.exponents)

    def _make_room_for_tiles(self, count: int) -> None:
        self._make_room(0, self._capacity.room(self._context, self.id.layer, len(self.host_tiles) + count))

    def _join(self, cold: Positions, located: Selection, free: int) -> npt.NDArray[np.bool_]:
        """While there is room for residents, the most frequent of the tokens just read join; which ones did."""
        joined = np.zeros(len(cold), bool)
        if free > 0 and len(cold):
            ranks = np.argsort(self.placement.counts[cold], kind="stable")[::-1][:free]
            self.hot_pool.insert(cold[ranks], located.cold_rows.index_select(0, torch.from_numpy(ranks.copy())))
            joined[ranks] = True
        return joined

    def _receive(self, ranks: Positions, located: Selection, capacity: int) -> None:
        """Rows just read become guests, at most ``capacity`` in all; the newest of them if they are more."""
        pool = self.hot_pool
        ranks = ranks[max(0, len(ranks) - capacity) :]
        fresh = min(len(ranks), max(0, capacity - pool.guests))
        if fresh:
            rows = located.cold_rows.index_select(0, torch.from_numpy(ranks[:fresh]))
            pool.insert(located.cold[ranks[:fresh]], rows, guests=True)
        if len(ranks) > fresh:
            leaving = pool.longest_unused(len(ranks) - fresh)
            pool.replace_guests(leaving, located.cold[ranks[fresh:]], located.cold_rows, ranks[fresh:])

    def seed(self, selections: list[Positions]) -> None:
        """Fill the hot pool after a prompt: what its last queries selected counts as the first steps' history."""
        for selected in selections:
            self.placement.count(selected)
        room = self._room
        pinned_from = min(self.stored, self.length - room.pinned)
        hottest = self.placement.hottest(pinned_from, max(0, room.rows - room.guests - (self.stored - pinned_from)))
        held = self.hot_pool.positions()
        leaving = np.setdiff1d(held[held < pinned_from], hottest, assume_unique=True)
        self.hot_pool.evict(leaving)
        joining = hottest[self.hot_pool.slot_of[hottest] < 0]
        for part in np.array_split(joining, max(1, len(joining) * self.geometry.row_bytes // _PIECE_BYTES)):
            self.hot_pool.insert(part, self.fetch(part).wait())
        self._account()

    def _account(self) -> None:
        """Tell the ledger what this stream holds now."""
        held = (
            self.device_tier.nbytes,
            self.hot_pool.nbytes + self.host_tiles.nbytes,
            self.stored * self.geometry.row_bytes,
        )
        if held == self._counted:
            return
        device, hot, cold = (now - before for now, before in zip(held, self._counted, strict=True))
        self._counted = held
        self._ledger.change(device=device, hot=hot, cold=cold)


def open_streams(
    streams: Iterable[Stream],
    geometry: Geometry,
    csd: Device,
    capacity: Capacity,
    ledger: Ledger,
    *,
    reserve_tokens: int,
    copies: dict[Stream, ScoringCopy],
    device: torch.device,
) -> dict[Stream, TokenStream]:
    """The empty streams of one engine: they share the memory that rows are brought together in."""
    pieces, buffers = _make_pieces(geometry), RowBuffers(geometry)
    return {
        stream: TokenStream(
            stream,
            geometry,
            csd,
            capacity,
            ledger,
            reserve_tokens=reserve_tokens,
            copies=copies,
            device=device,
            pieces=pieces,
            buffers=buffers,
        )
        for stream in streams
    }
