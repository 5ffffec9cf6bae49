"""The scorer that runs ``qk_score`` on a board."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.config import DEVICE_KEYS, DEVICE_SPLITS
from hillinfer.csd.abi import Layout
from hillinfer.csd.abi.layout import LANES
from hillinfer.csd.assembly import AssemblingScorer
from hillinfer.csd.contract import Capabilities, Counters, Record, Rows, Run, Stream
from hillinfer.csd.kernel.board import Board
from hillinfer.csd.kernel.keys import KeyStore
from hillinfer.csd.kernel.launches import KernelTicket, LaunchQueue
from hillinfer.csd.kernel.resident import ResidentKeys
from hillinfer.csd.kernel.streamed import PIECE_BYTES, RING, StreamedKeys
from hillinfer.csd.scorer import timed
from hillinfer.errors import DeviceError, DeviceFull, SettingError, nearest
from hillinfer.kv.column import Column
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery

COPIES = ("auto", "integers", "fp16")

_NO_ROWS = np.empty((0, 0), np.uint8)
_FIX = "keep the keys on the drive (--device-keys stream), shorten the document, or use the software device"


@dataclass(frozen=True)
class KernelSettings:
    """How a driver uses its board.

    keys          where the scoring copy lies: "resident" in the board's memory, "stream" on the drive, read for every
                  query; "auto": resident if the expected tokens fit, else stream where the board has p2p
    key_format    what the engine casts keys to, "int8" or "int4"
    copy          what the scoring copy holds: those "integers", or the keys as "fp16", which the kernel casts to the
                  same integers; "auto": integers where keys are resident, fp16 where they are streamed
    chunk         most tokens of a launch on resident keys, a power of two
    depth         pieces (of a launch each, as a rule) queued at once
    piece_bytes   of keys read at once when they are streamed
    ring          such pieces on the board at once
    split         how several boards share the keys: by "layer" or by "tokens" (hillinfer.csd.several)
    """

    keys: str = "auto"
    key_format: str = "int8"
    copy: str = "auto"
    chunk: int = 16384
    depth: int = 64
    piece_bytes: int = PIECE_BYTES
    ring: int = RING
    split: str = "tokens"

    def __post_init__(self) -> None:
        if self.keys not in DEVICE_KEYS:
            raise SettingError(f"unknown place for the device's keys {self.keys!r}{nearest(self.keys, DEVICE_KEYS)}")
        if self.split not in DEVICE_SPLITS:
            raise SettingError(f"unknown split {self.split!r}{nearest(self.split, DEVICE_SPLITS)}")
        if self.copy not in COPIES:
            raise SettingError(f"unknown scoring copy {self.copy!r}{nearest(self.copy, COPIES)}")
        if self.key_format not in ("int8", "int4"):
            raise SettingError(f"unknown key format {self.key_format!r}: choose int8 or int4")
        if self.chunk < 64 or self.chunk & (self.chunk - 1) or self.chunk > 1 << 20:
            raise SettingError(f"chunk is {self.chunk}: choose a power of two from 64 to {1 << 20}")
        if min(self.depth, self.ring, self.piece_bytes) < 1:
            raise SettingError("depth, ring and piece_bytes must be at least 1")


class KernelScorer(AssemblingScorer):
    """The scoring copy packed for the kernel, and launches over it. Owns the board.

    Keys that lie there as FP16 are cast by the kernel, with the same exponents to the same integers: every kind of copy
    gives the same scores, to the bit.

    folder          for streamed keys; it exists
    region_tokens   most tokens a sequence may have: whole tiles
    counters        to count in; None: its own
    """

    def __init__(
        self,
        board: Board,
        geometry: Geometry,
        folder: Path,
        *,
        region_tokens: int,
        record: Record,
        settings: KernelSettings | None = None,
        counters: Counters | None = None,
    ) -> None:
        self._board, self._geometry, self._folder = board, geometry, folder
        self._settings = settings or KernelSettings()
        self._region_tokens = region_tokens
        self.counters = Counters() if counters is None else counters
        self._record = timed(record, self.counters)
        self._written = 0
        formats = ("int8", "int4") if self._settings.key_format == "int8" else ("int4",)
        self.capabilities = Capabilities(board.name, formats, board.memory_bytes, board.p2p)
        self._exponents: dict[Stream, Column[np.uint8]] = {}
        self._keys: KeyStore | None = None
        self._closed = False
        self._layout_of("stream" if self._settings.keys == "stream" else "resident")  # refuses what cannot be scored

    def _layout_of(self, keys: str) -> Layout:
        geometry, copy, integers = self._geometry, self._settings.copy, self._settings.key_format
        halves = copy == "fp16" or (copy == "auto" and keys == "stream")
        stored = f"fp16_{integers}" if halves else integers
        dim = geometry.head_dim if halves else geometry.scored_dim
        # fitted copies have one exponent for all heads of a tile, so that two narrow heads can share a beat
        pair = geometry.copy_dim is not None and stored == "int4" and 2 * dim <= LANES["int4"]
        return Layout(stored, geometry.kv_heads, geometry.group, dim, pair)

    @property
    def keys(self) -> str:
        """Where the keys are: "resident" or "stream"; "auto" while that is open."""
        if self._keys is None:
            return self._settings.keys
        return "stream" if isinstance(self._keys, StreamedKeys) else "resident"

    def _open(self, keys: str) -> None:
        """Decide where keys lie. Takes no memory of the board yet."""
        if self._keys is not None:
            self._keys.stop()
        geometry, settings = self._geometry, self._settings
        self._layout = layout = self._layout_of(keys)
        if keys == "stream":
            self._keys = StreamedKeys(
                self._board,
                geometry.layers,
                layout.row_bytes,
                self._folder,
                self._region_tokens,
                self.counters,
                piece_bytes=settings.piece_bytes,
                ring=settings.ring,
            )
        else:
            self._keys = ResidentKeys(self._board, geometry.layers, layout.row_bytes, settings.chunk)
        self._queue = LaunchQueue(self._board, layout, self._keys, settings.depth, self.counters, self._record)

    def _store(self) -> KeyStore:
        """Where keys lie; decided now at the latest."""
        if self._keys is None:
            self._open("stream" if self._settings.keys == "stream" else "resident")
        assert self._keys is not None
        return self._keys

    def check_room(self, tokens: int, sequences: int) -> int:
        if self._settings.keys == "auto" and not self._exponents:
            self._open("resident")
            if self._board.p2p and self._lack(tokens, sequences):
                self._open("stream")
        lack = self._lack(tokens, sequences)
        if lack:
            raise DeviceFull(lack)
        return max(0, self._store().file_bytes(tokens, sequences) - self._written)

    def _lack(self, tokens: int, sequences: int) -> str:
        """What is wrong with the board's memory for so many tokens, if anything."""
        memory = self._board.memory_bytes
        need = self._store().board_bytes(tokens, sequences) + self._queue.board_bytes
        if memory is None or need <= memory:
            return ""
        return (
            f"{self._board.name} has {memory / 1e6:.1f} MB of memory and the keys of {tokens} tokens in {sequences} "
            f"sequences and {self._geometry.layers} layers need {need / 1e6:.1f} MB of it: {_FIX}"
        )

    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys) -> None:
        store = self._store()
        packed = self._pack(rows, keys)
        try:
            with self._queue.lock:
                if not self._exponents:
                    self._queue.reserve()
                store.append(stream, first, packed)
        except DeviceFull as error:
            raise DeviceFull(f"{error}: {_FIX}") from None
        self._written += len(packed)
        self.counters.scoring_bytes += len(packed)
        self._column(stream).append(self._pack_exponents(keys))

    def rekey(self, stream: Stream, first: int, keys: ScoringKeys) -> None:
        store = self._store()
        if self._layout.keys.startswith("fp16"):
            raise DeviceError(f"{self._board.name} casts FP16 keys itself: they come with their rows, and stay")
        column = self._column(stream)
        tile, known = first // TILE, len(column)
        again = min(known - tile, len(keys.exponents))  # tiles that have keys already
        if again:
            self.flush()  # nothing is on its way to where the new keys go
            old = ScoringKeys(keys.integers[: again * TILE], keys.exponents[:again])
            with self._queue.lock:
                store.replace(stream, first, self._layout.pack_keys(old.integers).reshape(-1))
            column.values[tile : tile + again] = self._pack_exponents(old)
        if again < len(keys.exponents):
            rest = ScoringKeys(keys.integers[again * TILE :], keys.exponents[again:])
            self.append(stream, first + again * TILE, _NO_ROWS, rest)

    def _column(self, stream: Stream) -> Column[np.uint8]:
        """Exponents of a stream's tiles as the kernel reads them."""
        return self._exponents.setdefault(stream, Column(np.uint8, (self._layout.exponent_bytes,)))

    def _pack_exponents(self, keys: ScoringKeys) -> npt.NDArray[np.uint8]:
        return self._layout.pack_exponents(keys.exponents).reshape(len(keys.exponents), -1)

    def _pack(self, rows: Rows, keys: ScoringKeys) -> npt.NDArray[np.uint8]:
        """Keys in the kernel's layout, bytes [n · row_bytes]."""
        if not self._layout.keys.startswith("fp16"):
            return self._layout.pack_keys(keys.integers).reshape(-1)
        geometry = self._geometry
        whole = torch.from_numpy(rows).view(geometry.dtype)
        halves = geometry.unpack_rows(whole)[0].transpose(0, 1).to(torch.float16)  # as cast_keys rounds them
        return self._layout.pack_keys(halves.contiguous().numpy()).reshape(-1)

    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> KernelTicket:
        self._store()
        column = self._exponents.get(stream)
        exponents = np.empty((0, self._layout.exponent_bytes), np.uint8) if column is None else column.values
        return self._queue.submit(stream, query, runs, exponents)

    def flush(self) -> None:
        if self._keys is not None:
            self._keys.flush()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._keys is not None:
            self._queue.close()
            self._keys.stop()
        self._board.close()
