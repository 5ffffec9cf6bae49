"""Scoring without a copy: keys are read from the cold pool for every query, and cast on the way as the kernel does.

For memory that has no room for even the smallest copy. It moves every row once per query, so it is bound by the disk;
scores are those of INT8 copies, to the bit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
import torch

from hillinfer.csd.assembly import AssembledTicket, AssemblingScorer
from hillinfer.csd.cold.rows import ColdRows
from hillinfer.csd.contract import Capabilities, Counters, ReadTicket, Record, Rows, Run, Stream
from hillinfer.csd.scorer import timed
from hillinfer.errors import DeviceError
from hillinfer.kv.column import Column
from hillinfer.kv.geometry import TILE
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.scoring import pack, score

_PIECE_BYTES = 4 << 20  # of rows read at a time, while those before are scored


class StreamingScorer(AssemblingScorer):
    """Keeps the exponents of every tile, a byte per KV head, and nothing else.

    rows     the cold pool, which has every token that was appended; whose rows are checked as they are read
    record   called as ``record(name, thread, start, end)`` for each submission that is complete, for a trace
    """

    def __init__(self, rows: ColdRows, *, record: Record) -> None:
        self.capabilities = Capabilities("software", ("int8",), None, p2p=False)
        self.counters = Counters()
        self.rows, self.record = rows, timed(record, self.counters)
        self.exponents: dict[Stream, Column[np.int8]] = {}
        self.piece_tokens = max(TILE, _PIECE_BYTES // rows.geometry.row_bytes // TILE * TILE)

    def check_room(self, tokens: int, sequences: int) -> int:  # noqa: ARG002
        return 0

    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys) -> None:  # noqa: ARG002
        column = self.exponents.setdefault(stream, Column(np.int8, (keys.exponents.shape[1],)))
        column.append(keys.exponents)

    def rekey(self, stream: Stream, first: int, keys: ScoringKeys) -> None:  # noqa: ARG002
        raise DeviceError("keys that are streamed come with their rows, and stay: only a copy can be made again")

    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> AssembledTicket:
        self.counters.launches += len(runs)
        return _Streaming(self, stream, query, runs)

    def flush(self) -> None:
        """Nothing but rows is written."""

    def close(self) -> None:
        """Nothing but rows is held."""


class _Streaming(AssembledTicket):
    """Scores made piece by piece as they are asked for; the next piece is being read meanwhile."""

    def __init__(self, scorer: StreamingScorer, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> None:
        super().__init__(runs)
        self._scorer, self._stream, self._query = scorer, stream, query
        size = scorer.piece_tokens
        self._pieces = [
            Run(first, min(size, run.first + run.tokens - first))
            for run in runs
            for first in range(run.first, run.first + run.tokens, size)
        ]
        self._next = self._done = 0
        self._started = time.perf_counter()
        self._cancelled = False
        self._coming = self._read()

    def advance(self, count: int) -> bool:
        while self._done < count and not self._cancelled:
            piece, rows, ticket = self._coming
            following = self._read() if self._next < len(self._pieces) else None
            ticket.wait()
            self._score(piece, rows)
            if following is None:
                self._scorer.record("csd score", "software-csd", self._started, time.perf_counter())
            else:
                self._coming = following
        return not self._cancelled

    def _read(self) -> tuple[Run, torch.Tensor, ReadTicket]:
        """Start to read the next piece."""
        piece, cold = self._pieces[self._next], self._scorer.rows
        self._next += 1
        rows = torch.empty(piece.tokens, cold.geometry.row_stride, dtype=cold.geometry.dtype)
        positions = np.arange(piece.first, piece.first + piece.tokens)
        return piece, rows, cold.read(self._stream, positions, rows.view(torch.uint8).numpy())

    def _score(self, piece: Run, rows: torch.Tensor) -> None:
        geometry, counters = self._scorer.rows.geometry, self._scorer.counters
        halves = geometry.unpack_rows(rows)[0].transpose(0, 1).to(torch.float16)  # as cast_keys rounds them
        tiles = slice(piece.first // TILE, (piece.first + piece.tokens) // TILE)
        exponents = self._scorer.exponents[self._stream].values[tiles]
        packed = pack(halves.contiguous().numpy(), "fp16")
        self.scores[self._done : self._done + piece.tokens] = score(packed, exponents, self._query, "fp16")
        self._done += piece.tokens
        counters.scanned_tokens += piece.tokens
        counters.scan_bytes += halves.nbytes
        counters.host_key_bytes += rows.nbytes

    def cancel(self) -> None:
        self._cancelled = True
