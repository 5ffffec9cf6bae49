"""A device of two halves: rows in the cold pool, and what scores their keys."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hillinfer.csd.cold import files
from hillinfer.csd.cold.rows import ColdRows
from hillinfer.csd.contract import Capabilities, Counters, Device, KeyRun, ReadTicket, Rows, Run, ScoreTicket, Stream
from hillinfer.csd.scorer import Scorer
from hillinfer.errors import DeviceError
from hillinfer.kv.geometry import TILE
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery


class TwoPartDevice(Device):
    """The driver contract over a cold pool and a scorer, both of which it owns.

    Nothing that runs refers to the device itself: a device that is dropped closes like one that is told to.
    """

    def __init__(self, rows: ColdRows, scorer: Scorer) -> None:
        self.rows, self.scorer = rows, scorer
        self._keyed: dict[Stream, int] = {}  # tokens with scoring keys
        self._calls = threading.Lock()
        self._close = weakref.finalize(self, _close, rows, scorer)

    @property
    def capabilities(self) -> Capabilities:
        return self.scorer.capabilities

    @property
    def counters(self) -> Counters:
        return self.scorer.counters

    def check_room(self, tokens: int, sequences: int, *, scored: bool = True) -> None:
        self._check_open()
        need = self.rows.geometry.kv_bytes(tokens, sequences) - self.counters.stored_bytes
        copy = self.scorer.check_room(tokens, sequences) if scored else 0
        files.check_room(self.rows.folder, need + copy)

    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys | None) -> None:
        with self._calls:
            self._check_open()
            held, keyed = self.rows.length(stream), self._keyed.get(stream, 0)
            if held and (keyed != held if keys is not None else keyed):
                raise DeviceError(f"layer {stream.layer}: scoring keys come with all tokens of a stream, or with none")
            self.rows.append(stream, first, rows)
            self.counters.stored_bytes += rows.size
            if keys is not None:
                self.scorer.append(stream, first, rows, keys)
                self._keyed[stream] = first + len(rows)

    def rekey(self, stream: Stream, first: int, keys: ScoringKeys) -> None:
        with self._calls:
            self._check_open()
            tokens, keyed = len(keys.integers), self._keyed.get(stream, 0)
            if first % TILE or tokens % TILE or first > keyed or first + tokens > self.rows.length(stream):
                raise DeviceError(f"layer {stream.layer}: scoring keys of {tokens} tokens from {first} on leave a gap")
            self.scorer.rekey(stream, first, keys)
            self._keyed[stream] = max(keyed, first + tokens)

    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> ScoreTicket:
        with self._calls:
            self._check_open()
            held = self._keyed.get(stream, 0)
            if not held and self.rows.length(stream):
                raise DeviceError(
                    f"layer {stream.layer}: nothing to score, the stream's tokens came without scoring keys"
                )
            for run in runs:
                if run.first % TILE or run.tokens % TILE or not 0 < run.tokens <= held - run.first or run.first < 0:
                    raise DeviceError(f"layer {stream.layer}: no whole tiles in {run} of {held} tokens")
            return self.scorer.submit(stream, query, runs)

    def in_memory(self, stream: Stream, runs: Sequence[Run]) -> list[KeyRun] | None:
        with self._calls:
            self._check_open()
            return self.scorer.in_memory(stream, runs)

    def scanned(self, stream: Stream, tokens: int, runs: int, seconds: float) -> None:
        self.scorer.scanned(stream, tokens, runs, seconds)

    def read(self, stream: Stream, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
        with self._calls:
            self._check_open()
            self.counters.read_rows += len(positions)
            self.counters.read_bytes += out.nbytes
            return self.rows.read(stream, positions, out)

    def flush(self) -> None:
        with self._calls:
            self._check_open()
            self.rows.writer.drain()
            self.scorer.flush()

    def close(self) -> None:
        with self._calls:
            self._close()

    def _check_open(self) -> None:
        if not self._close.alive:
            raise DeviceError("the device is closed: make a new cache")


def _close(rows: ColdRows, scorer: Scorer) -> None:
    try:
        scorer.close()
    finally:
        rows.close()
