"""The software device: the driver contract on an ordinary disk, bit-exact with the kernel."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.csd import abi
from hillinfer.csd.abi import ScoreBlock
from hillinfer.csd.contract import (
    Capabilities,
    Counters,
    Device,
    ReadTicket,
    Record,
    Rows,
    Run,
    ScoreTicket,
    Stream,
)
from hillinfer.csd.software import files
from hillinfer.csd.software.io_pool import IoPool
from hillinfer.csd.software.key_log import KeyLog
from hillinfer.csd.software.row_log import RowLog
from hillinfer.errors import CorruptRecordError, DeviceError
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery


class _Launch(ScoreTicket):
    """A launch on its way through the scoring thread."""

    def __init__(self, stream: Stream, runs: Sequence[Run], launch: _native.Launch, tag: int, record: Record) -> None:
        super().__init__(runs)
        self._stream, self._launch, self._tag, self._record = stream, launch, tag, record

    def __iter__(self) -> Iterator[ScoreBlock]:
        for block in range(self._launch.blocks):
            if not self._launch.wait(block):
                self._check()
                return
            yield abi.unpack_block(self._launch.slot(block), self._tag)
        self._record("csd score", "software-csd", *self._launch.seconds)

    def merge_into(self, scores: npt.NDArray[np.int16]) -> None:
        if not self._launch.merge_into(scores):
            self._check()
            raise DeviceError("a launch was cancelled while its scores were waited for")
        self._record("csd score", "software-csd", *self._launch.seconds)

    def cancel(self) -> None:
        self._launch.cancel()

    def _check(self) -> None:
        if self._launch.failure:
            raise CorruptRecordError(
                f"the scoring copy of layer {self._stream.layer}, sequence {self._stream.sequence} is not what was "
                f"written: {self._launch.failure}. Check the disk, or use another cold folder (--cold-dir)"
            )


class SoftwareDevice(Device):
    """Rows in a log per layer, a scoring copy beside it, one scoring thread, a pool of reading and writing threads.

    The scoring thread stands for the FPGA: it works through launches in order and emits Score Blocks as they are
    complete. It is native and needs no interpreter, so that host and device score at the same time.

    region_tokens   most tokens a sequence may have
    record          called as ``record(name, thread, start, end)`` for each launch that is complete, for a trace
    """

    def __init__(self, geometry: Geometry, folder: Path, *, create: bool, region_tokens: int, record: Record) -> None:
        self.capabilities = Capabilities("software", ("int8", "int4"), None, p2p=False)
        self.counters = Counters()
        self._geometry, self._folder, self._record = geometry, folder, record
        files.prepare_folder(folder, create=create)
        self._region_tokens = -(-region_tokens // TILE) * TILE
        self._tags = itertools.count(1)
        self._scanner = _native.ScanThread()
        self._pool = IoPool()
        self._rows: list[RowLog] = []
        self._keys: list[KeyLog] = []
        # Nothing that runs refers to the device itself: a device that is dropped closes like one that is told to.
        self._close = weakref.finalize(self, _close, self._scanner, self._pool, self._rows, self._keys)
        try:
            for layer in range(geometry.layers):
                self._rows.append(RowLog(layer, geometry.row_bytes, self._region_tokens, folder, self._pool))
                self._keys.append(KeyLog(geometry.kv_heads, geometry.head_dim, self._region_tokens, folder))
        except BaseException:
            self.close()
            raise

    def check_room(self, tokens: int, sequences: int) -> None:
        geometry = self._geometry
        need = geometry.layers * sequences * tokens * (geometry.row_bytes + geometry.score_key_bytes)
        files.check_room(self._folder, need - self.counters.stored_bytes - self.counters.scoring_bytes)

    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys) -> None:
        self._check_open()
        log = self._rows[stream.layer]
        if first != log.length(stream.sequence) or len(rows) % TILE or first % TILE:
            raise DeviceError(
                f"layer {stream.layer}: tokens {first}-{first + len(rows) - 1} are not the next whole tiles of a "
                f"log that holds {log.length(stream.sequence)} tokens"
            )
        if first + len(rows) > self._region_tokens:
            raise DeviceError(f"the software device was opened for at most {self._region_tokens} tokens a sequence")
        log.append(stream.sequence, rows)
        self._keys[stream.layer].append(stream.sequence, keys)
        self.counters.stored_bytes += rows.size
        self.counters.scoring_bytes += keys.integers.size

    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> ScoreTicket:
        self._check_open()
        held = self._rows[stream.layer].length(stream.sequence)
        for run in runs:
            if run.first % TILE or run.tokens % TILE or not 0 < run.tokens <= held - run.first:
                raise DeviceError(f"layer {stream.layer}: no whole tiles in {run} of {held} tokens")
        tokens = sum(run.tokens for run in runs)
        self.counters.launches += len(runs)
        self.counters.scanned_tokens += tokens
        self.counters.scan_bytes += tokens * self._geometry.score_key_bytes
        tag = next(self._tags) & 0x7FFFFFFF
        launch = self._keys[stream.layer].launch(stream.sequence, query, runs, tag)
        self._scanner.submit(launch)
        return _Launch(stream, runs, launch, tag, self._record)

    def read(self, stream: Stream, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
        self._check_open()
        self.counters.read_rows += len(positions)
        self.counters.read_bytes += len(positions) * self._geometry.row_bytes
        return self._rows[stream.layer].read(stream.sequence, positions, out)

    def flush(self) -> None:
        self._check_open()
        self._pool.drain()

    def close(self) -> None:
        self._close()

    def _check_open(self) -> None:
        if not self._close.alive:
            raise DeviceError("the device is closed: make a new cache")


def _close(scanner: _native.ScanThread, pool: IoPool, rows: list[RowLog], keys: list[KeyLog]) -> None:
    scanner.close()
    pool.close()
    for row_log in rows:
        row_log.close()
    for key_log in keys:
        key_log.close()
