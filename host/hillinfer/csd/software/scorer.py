"""The software device's scorer: this machine's processor, bit-exact with the kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.csd import abi
from hillinfer.csd.abi import ScoreBlock
from hillinfer.csd.contract import Capabilities, Counters, KeyRun, Record, Rows, Run, ScoreTicket, Stream
from hillinfer.csd.scorer import Scorer, timed
from hillinfer.csd.software.key_memory import KeyMemory
from hillinfer.errors import DeviceError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery


class _Launch(ScoreTicket):
    """A launch that the scanning thread works on, or whoever waits for it."""

    shared = True

    def __init__(self, runs: Sequence[Run], launch: _native.Launch, tag: int, record: Record) -> None:
        super().__init__(runs)
        self._launch, self._tag, self._record = launch, tag, record

    def __iter__(self) -> Iterator[ScoreBlock]:
        for block in range(self._launch.blocks):
            if not self._launch.wait(block):
                return
            yield abi.unpack_block(self._launch.slot(block), self._tag)
        self._record("csd score", "software-csd", *self._launch.seconds)

    def merge_into(self, scores: npt.NDArray[np.int16]) -> None:
        if not self._launch.merge_into(scores):
            raise DeviceError("a launch was cancelled while its scores were waited for")
        self._record("csd score", "software-csd", *self._launch.seconds)

    def cancel(self) -> None:
        self._launch.cancel()


class SoftwareScorer(Scorer):
    """A scoring copy in memory, and one native thread that scans it.

    The thread stands for the FPGA: it works through launches in order and needs no interpreter, so that host and
    device score at the same time. Who waits for a launch lends a hand, and does the short ones alone.

    region_tokens   most tokens a sequence may have: whole tiles
    record          called as ``record(name, thread, start, end)`` for each launch that is complete, for a trace
    counters        to count in; None: its own
    """

    def __init__(
        self, geometry: Geometry, *, region_tokens: int, record: Record, counters: Counters | None = None
    ) -> None:
        self.capabilities = Capabilities("software", ("int8", "int4"), None, p2p=False)
        self.counters = Counters() if counters is None else counters
        self._geometry, self._record = geometry, timed(record, self.counters)
        self._region_tokens = region_tokens
        self._tags = itertools.count(1)
        self._scanner = _native.ScanThread()
        self._keys: dict[Stream, KeyMemory] = {}

    def check_room(self, tokens: int, sequences: int) -> int:  # noqa: ARG002
        return 0

    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys) -> None:  # noqa: ARG002
        self.rekey(stream, first, keys)

    def rekey(self, stream: Stream, first: int, keys: ScoringKeys) -> None:
        held = self._keys.get(stream)
        if held is None:
            _, heads, dim = keys.integers.shape
            held = self._keys[stream] = KeyMemory(heads, dim, self._geometry.key_format, self._region_tokens)
        before = held.tokens
        held.put(first, keys)
        self.counters.scoring_bytes += (held.tokens - before) * held.bytes_per_token

    def tokens(self, stream: Stream) -> int:
        """Tokens of a stream in the scoring copy."""
        return self._keys[stream].tokens if stream in self._keys else 0

    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> ScoreTicket:
        self.scanned(stream, sum(run.tokens for run in runs), len(runs), 0.0)
        tag = next(self._tags) & 0x7FFFFFFF
        launch = _native.Launch(query.native, self._keys[stream].runs(runs), tag, -32768)
        self._scanner.submit(launch)
        return _Launch(runs, launch, tag, self._record)

    def in_memory(self, stream: Stream, runs: Sequence[Run]) -> list[KeyRun]:
        return self._keys[stream].runs(runs)

    def scanned(self, stream: Stream, tokens: int, runs: int, seconds: float) -> None:
        self.counters.scan(tokens, runs, tokens * self._keys[stream].bytes_per_token, seconds)

    def flush(self) -> None:
        """Nothing is under way: memory has it."""

    def close(self) -> None:
        self._scanner.close()
