"""The software device's scorer: this machine's processor, bit-exact with the kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.csd import abi
from hillinfer.csd.abi import ScoreBlock
from hillinfer.csd.contract import Capabilities, Counters, Record, Rows, Run, ScoreTicket, Stream
from hillinfer.csd.scorer import Scorer, timed
from hillinfer.csd.software.key_log import KeyLog
from hillinfer.errors import CorruptRecordError, DeviceError
from hillinfer.kv.geometry import Geometry
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


class SoftwareScorer(Scorer):
    """A scoring copy in a file per layer, and one native thread that scans it.

    The thread stands for the FPGA: it works through launches in order and emits Score Blocks as they are complete. It
    needs no interpreter, so that host and device score at the same time.

    folder          for the scoring copy; it exists
    region_tokens   most tokens a sequence may have: whole tiles
    record          called as ``record(name, thread, start, end)`` for each launch that is complete, for a trace
    counters        to count in; None: its own
    """

    def __init__(
        self,
        geometry: Geometry,
        folder: Path,
        *,
        region_tokens: int,
        record: Record,
        counters: Counters | None = None,
    ) -> None:
        self.capabilities = Capabilities("software", ("int8", "int4"), None, p2p=False)
        self.counters = Counters() if counters is None else counters
        self._geometry, self._record = geometry, timed(record, self.counters)
        self._tags = itertools.count(1)
        self._scanner = _native.ScanThread()
        self.logs: list[KeyLog] = []
        try:
            for _ in range(geometry.layers):
                self.logs.append(KeyLog(geometry.kv_heads, geometry.head_dim, region_tokens, folder))
        except BaseException:
            self.close()
            raise

    def check_room(self, tokens: int, sequences: int) -> int:
        return self._geometry.layers * sequences * tokens * self._geometry.score_key_bytes - self.counters.scoring_bytes

    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys) -> None:  # noqa: ARG002
        self.logs[stream.layer].append(stream.sequence, keys)
        self.counters.scoring_bytes += keys.integers.size

    def tokens(self, stream: Stream) -> int:
        """Tokens of a stream in the scoring copy."""
        return self.logs[stream.layer].length(stream.sequence)

    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> ScoreTicket:
        tokens = sum(run.tokens for run in runs)
        self.counters.launches += len(runs)
        self.counters.scanned_tokens += tokens
        self.counters.scan_bytes += tokens * self._geometry.score_key_bytes
        tag = next(self._tags) & 0x7FFFFFFF
        launch = self.logs[stream.layer].launch(stream.sequence, query, runs, tag)
        self._scanner.submit(launch)
        return _Launch(stream, runs, launch, tag, self._record)

    def flush(self) -> None:
        """Nothing waits to be written: the page cache has it."""

    def close(self) -> None:
        self._scanner.close()
        for log in self.logs:
            log.close()
