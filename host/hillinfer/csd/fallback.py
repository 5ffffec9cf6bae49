"""When a device fails while it scores: the software device takes over, and the same tokens come out.

Rows are not the failed device's: they lie in the cold pool, on an ordinary drive. So its scoring copy can be made
again from them, to the bit, and what was being scored is scored once more. Only for those who ask for it
(``--on-device-error fallback``): decoding goes on, more slowly.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.csd.abi import ScoreBlock
from hillinfer.csd.cold.rows import ColdRows
from hillinfer.csd.contract import Cast, KeyRun, Record, Rows, Run, ScoreTicket, Stream
from hillinfer.csd.scorer import Scorer
from hillinfer.csd.software.scorer import SoftwareScorer
from hillinfer.errors import CorruptRecordError, DeviceError
from hillinfer.kv.geometry import TILE
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery

logger = logging.getLogger(__name__)

_FAILURES = (DeviceError, CorruptRecordError)  # not a full disk: the software device needs one too
_PIECE_BYTES = 4 << 20  # of rows read at a time to make the scoring copy again


class FallbackScorer(Scorer):
    """A scorer until it fails, the software device's from then on.

    rows   the cold pool, which has every token that was appended
    cast   how the engine casts a stream's keys [H, n, d]
    """

    def __init__(self, scorer: Scorer, rows: ColdRows, record: Record, cast: Cast) -> None:
        self._scorer, self._rows, self._record, self._cast = scorer, rows, record, cast
        self.capabilities, self.counters = scorer.capabilities, scorer.counters
        self._software: SoftwareScorer | None = None
        self._scored: set[Stream] = set()  # the cold pool has streams without scoring keys as well
        self._falling = threading.RLock()
        self._closed = False

    def check_room(self, tokens: int, sequences: int) -> int:
        if self._software is None:
            try:
                return self._scorer.check_room(tokens, sequences)
            except _FAILURES as error:
                self._fall(error)
        return self._fallen().check_room(tokens, sequences)

    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys) -> None:
        self._scored.add(stream)
        if self._software is None:
            try:
                self._scorer.append(stream, first, rows, keys)
            except _FAILURES as error:
                self._fall(error)
            else:
                return
        with self._falling:
            if self._fallen().tokens(stream) == first:  # else their keys were made from the rows, which are there
                self._fallen().append(stream, first, rows, keys)

    def rekey(self, stream: Stream, first: int, keys: ScoringKeys) -> None:
        self._scored.add(stream)
        if self._software is None:
            try:
                self._scorer.rekey(stream, first, keys)
            except _FAILURES as error:
                self._fall(error)
            else:
                return
        with self._falling:
            self._fallen().rekey(stream, first, keys)

    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> ScoreTicket:
        if self._software is None:
            try:
                return _Guarded(self, self._scorer.submit(stream, query, runs), stream, query)
            except _FAILURES as error:
                self._fall(error)
        return self._fallen().submit(stream, query, runs)

    def again(self, error: Exception, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> ScoreTicket:
        """Score what a ticket could not, as the device failed with ``error``."""
        with self._falling:
            self._fall(error)
            return self._fallen().submit(stream, query, runs)

    def in_memory(self, stream: Stream, runs: Sequence[Run]) -> list[KeyRun] | None:
        return (self._software or self._scorer).in_memory(stream, runs)

    def scanned(self, stream: Stream, tokens: int, runs: int, seconds: float) -> None:
        (self._software or self._scorer).scanned(stream, tokens, runs, seconds)

    def flush(self) -> None:
        if self._software is None:
            try:
                self._scorer.flush()
            except _FAILURES as error:
                self._fall(error)

    def close(self) -> None:
        with self._falling:
            self._closed = True
            (self._software or self._scorer).close()

    def _fallen(self) -> SoftwareScorer:
        assert self._software is not None
        return self._software

    def _fall(self, error: Exception) -> None:
        """Put the software device's scorer in the place of the one that failed."""
        with self._falling:
            if self._closed:
                raise error
            if self._software is not None:  # another ticket of the same device failed before
                return
            logger.warning("the device %s failed (%s); the software device takes over", self.capabilities.name, error)
            with contextlib.suppress(Exception):  # it failed: what it says on the way out is no news
                self._scorer.close()
            rows = self._rows
            self.counters.scoring_bytes, self.counters.fallback = 0, str(error)
            software = SoftwareScorer(
                rows.geometry, region_tokens=rows.region_tokens, record=self._record, counters=self.counters
            )
            try:
                for stream in self._scored.intersection(rows.streams()):
                    self._adopt(software, stream)
            except BaseException:
                software.close()
                raise
            self._software, self.capabilities = software, software.capabilities

    def _adopt(self, software: SoftwareScorer, stream: Stream) -> None:
        """Make the scoring keys of a stream again from its rows."""
        rows, geometry = self._rows, self._rows.geometry
        step = max(TILE, _PIECE_BYTES // geometry.row_bytes // TILE * TILE)
        for first in range(0, rows.length(stream), step):
            positions = np.arange(first, min(first + step, rows.length(stream)))
            piece = torch.empty(len(positions), geometry.row_stride, dtype=geometry.dtype)
            whole = piece.view(torch.uint8).numpy()
            rows.read(stream, positions, whole).wait()
            software.append(stream, first, whole, self._cast(stream, geometry.unpack_rows(piece)[0]))


class _Guarded(ScoreTicket):
    """A ticket of the device that may fail; then the software device scores the same runs again."""

    def __init__(self, scorer: FallbackScorer, ticket: ScoreTicket, stream: Stream, query: QuantisedQuery) -> None:
        super().__init__(ticket.runs)
        self._scorer, self._ticket, self._stream, self._query = scorer, ticket, stream, query

    def __iter__(self) -> Iterator[ScoreBlock]:
        given = 0
        try:
            for block in self._ticket:
                yield block
                given += 1
        except _FAILURES as error:
            self._again(error)
            for index, block in enumerate(self._ticket):
                if index >= given:
                    yield block

    def merge_into(self, scores: npt.NDArray[np.int16]) -> None:
        try:
            self._ticket.merge_into(scores)
        except _FAILURES as error:
            self._again(error)
            self._ticket.merge_into(scores)

    def _again(self, error: Exception) -> None:
        self._ticket = self._scorer.again(error, self._stream, self._query, self.runs)

    def cancel(self) -> None:
        self._ticket.cancel()
