"""The software device: the driver contract on an ordinary disk, bit-exact with the kernel."""

from __future__ import annotations

import itertools
import queue
import threading
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from hillinfer.csd import abi
from hillinfer.csd.abi import ScoreBlock, Words
from hillinfer.csd.contract import (
    Capabilities,
    Counters,
    Device,
    ReadTicket,
    Rows,
    Run,
    ScoreTicket,
    Span,
    Stream,
)
from hillinfer.csd.software import files
from hillinfer.csd.software.io_pool import IoPool
from hillinfer.csd.software.key_log import KeyLog
from hillinfer.csd.software.row_log import RowLog
from hillinfer.errors import DeviceError
from hillinfer.kv.geometry import BLOCK, TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.scoring import Scorer


@dataclass
class _Launch(ScoreTicket):
    """One submit: where its keys are, and the queue its slots come back on."""

    log: KeyLog
    sequence: int
    query: QuantisedQuery
    runs: tuple[Run, ...]
    tag: int
    slots: queue.SimpleQueue[Words | BaseException] = field(default_factory=queue.SimpleQueue)
    cancelled: bool = False

    def __iter__(self) -> Iterator[ScoreBlock]:
        for _ in range(sum(-(-run.tokens // BLOCK) for run in self.runs)):
            if self.cancelled:
                return
            slot = self.slots.get()
            if isinstance(slot, BaseException):
                raise slot
            yield abi.unpack_block(slot, self.tag)

    def cancel(self) -> None:
        self.cancelled = True


class SoftwareDevice(Device):
    """Rows in a log per layer, a scoring copy beside it, one scoring thread, a pool of reading and writing threads.

    The scoring thread stands for the FPGA: it works through launches in order and emits Score Blocks as they are
    complete. NumPy leaves the interpreter lock while it computes, so host and device score at the same time.

    region_tokens   most tokens a sequence may have
    span            called as ``with span("csd score"):`` around each launch, for a trace
    """

    def __init__(self, geometry: Geometry, folder: Path, *, create: bool, region_tokens: int, span: Span) -> None:
        self.capabilities = Capabilities("software", ("int8", "int4"), None, p2p=False)
        self.counters = Counters()
        self._geometry, self._folder = geometry, folder
        files.prepare_folder(folder, create=create)
        self._region_tokens = -(-region_tokens // TILE) * TILE
        self._tags = itertools.count(1)
        self._launches: queue.SimpleQueue[_Launch | None] = queue.SimpleQueue()
        self._pool = IoPool()
        self._rows: list[RowLog] = []
        self._keys: list[KeyLog] = []
        self._worker = threading.Thread(
            target=_work, args=(self._launches, geometry, span), name="software-csd", daemon=True
        )
        # Nothing that runs refers to the device itself: a device that is dropped closes like one that is told to.
        self._close = weakref.finalize(self, _close, self._launches, self._worker, self._pool, self._rows, self._keys)
        self._worker.start()
        try:
            for layer in range(geometry.layers):
                self._rows.append(RowLog(layer, geometry.row_bytes, self._region_tokens, folder, self._pool))
                self._keys.append(KeyLog(layer, geometry.kv_heads, geometry.head_dim, self._region_tokens, folder))
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
        launch = _Launch(self._keys[stream.layer], stream.sequence, query, tuple(runs), tag)
        self._launches.put(launch)
        return launch

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


def _close(
    launches: queue.SimpleQueue[_Launch | None],
    worker: threading.Thread,
    pool: IoPool,
    rows: list[RowLog],
    keys: list[KeyLog],
) -> None:
    launches.put(None)
    worker.join()
    pool.close()
    for row_log in rows:
        row_log.close()
    for key_log in keys:
        key_log.close()


def _work(launches: queue.SimpleQueue[_Launch | None], geometry: Geometry, span: Span) -> None:
    """The scoring thread, in place of the FPGA."""
    threadpool_limits(1, user_api="openmp")  # of this thread alone: it works beside the model's threads, not on them
    scorer = Scorer(geometry.kv_heads, geometry.head_dim)
    buffer = files.aligned_buffer(scorer.most * geometry.score_key_bytes)
    while (launch := launches.get()) is not None:
        try:
            with span("csd score"):
                _score(launch, scorer, buffer)
        except BaseException as error:
            launch.slots.put(error)  # the engine meets it where it waits for the block


def _score(launch: _Launch, scorer: Scorer, buffer: npt.NDArray[np.uint8]) -> None:
    """Score a few blocks at a time, and emit each of them."""
    for run in launch.runs:
        blocks = -(-run.tokens // BLOCK)
        for start in range(0, run.tokens, scorer.most):
            if launch.cancelled:
                return
            tokens = min(scorer.most, run.tokens - start)
            keys = launch.log.read(launch.sequence, run.first + start, tokens, buffer)
            scores = scorer.score(keys.integers, keys.exponents, launch.query)
            for begin in range(0, tokens, BLOCK):
                part = scores[begin : begin + BLOCK]
                index = (start + begin) // BLOCK
                slot = abi.pack_block(part, run.first + start + begin, launch.tag, index, blocks)
                launch.slots.put(slot)
