"""Tickets whose scores come together in one array, whatever pieces they arrive in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from hillinfer.csd.abi import ScoreBlock
from hillinfer.csd.contract import Run, ScoreTicket, Stream
from hillinfer.csd.scorer import Scorer
from hillinfer.errors import DeviceError
from hillinfer.kv.geometry import BLOCK
from hillinfer.kv.query import QuantisedQuery

_OFFSETS = np.arange(BLOCK, dtype=np.uint16)


class AssembledTicket(ScoreTicket):
    """Scores in flight, put into ``scores`` int16 [tokens] in the order of the runs.

    A launch need not begin where a block of the caller's run does: blocks are cut here, from scores that were checked.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        super().__init__(runs)
        self.scores = np.empty(sum(run.tokens for run in runs), np.int16)

    @abstractmethod
    def advance(self, count: int) -> bool:
        """Until the first ``count`` scores are there; False once it was cancelled. Raises what went wrong."""

    def __iter__(self) -> Iterator[ScoreBlock]:
        place = 0
        for run in self.runs:
            of = -(-run.tokens // BLOCK)
            for index in range(of):
                scanned = min(BLOCK, run.tokens - index * BLOCK)
                if not self.advance(place + scanned):
                    return
                scores = self.scores[place : place + scanned]
                yield ScoreBlock(run.first + index * BLOCK, _OFFSETS[:scanned], scores, scanned, index, of)
                place += scanned

    def merge_into(self, scores: npt.NDArray[np.int16]) -> None:
        place = 0
        for run in self.runs:
            if not self.advance(place + run.tokens):
                raise DeviceError("a launch was cancelled while its scores were waited for")
            scores[run.first : run.first + run.tokens] = self.scores[place : place + run.tokens]
            place += run.tokens


class AssemblingScorer(Scorer):
    """A scorer whose tickets are such ones."""

    @abstractmethod
    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> AssembledTicket: ...
