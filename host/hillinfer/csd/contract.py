"""The contract between the engine and a computational storage device (CSD).

A device owns the cold pool: it keeps every row it is given for as long as it lives, scores keys where they are, and
reads rows back. The life of a token on it:

    append(stream, first, rows, keys)   once, in whole tiles, in order; returns before the bytes are on the medium; keys
                                        with all tokens of a stream, or with none of one that is not scored (yet)
    rekey(stream, first, keys)          at any time: scoring keys that come later than the rows, or others than before
    submit(stream, query, runs)         any number of times: Score Blocks of the tokens in ``runs`` stream back
    read(stream, positions, out)        any number of times: full-precision rows, each one checked
    close()                             everything is gone, from memory and from the medium

Calls may come from several threads: a device takes them one after the other, in the order of its lock; a ticket is used
by one thread, which need not be the one that got it. ``submit`` and ``read`` return with a ticket before the work is
done; work of different tickets overlaps. What was appended is visible to every later submit and read, written yet or
not. An error of asynchronous work (a full disk, a corrupt row, a dead card) is raised by the ticket that met it, or by
the next call to the device.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.csd.abi import ScoreBlock
from hillinfer.errors import DeviceError
from hillinfer.kv.geometry import BLOCK
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery

Rows = npt.NDArray[np.uint8]

Record = Callable[[str, str, float, float], None]
"""Tells the trace of work that was done: ``record(name, thread, start, end)``, seconds of time.perf_counter."""


class Stream(NamedTuple):
    """One sequence of one layer: what a device keeps in order, and scores in one go."""

    layer: int
    sequence: int


Cast = Callable[[Stream, torch.Tensor], ScoringKeys]
"""Casts keys [H, n, d] of a stream, the first of which starts a tile, as its scoring keys were cast."""


class Run(NamedTuple):
    """Consecutive tokens first…first + tokens − 1. ``first`` begins a tile, and so does the token behind the run."""

    first: int
    tokens: int


KeyRun = tuple[int, int, npt.NDArray[np.uint8], npt.NDArray[np.int8]]
"""A run and where its keys are: first token, tokens, tiles in the scanning layout, exponents [tiles, H]."""


@dataclass(frozen=True)
class Capabilities:
    """What a device can do; the engine asks before it relies on it.

    key_formats    formats of the scoring copy it can scan ("int8", "int4", and "fp16" when it casts on the fly)
    memory_bytes   of its own for scoring copies; None: bounded by the medium only
    p2p            keys reach the scoring unit without passing through host memory
    """

    name: str
    key_formats: tuple[str, ...]
    memory_bytes: int | None
    p2p: bool


@dataclass
class Counters:
    """What a device did since it was opened.

    stored_bytes     rows written; scoring_bytes: keys in the scoring copy, as the device lays them out
    read_bytes       rows read, read_rows of them
    scan_bytes       keys scored, scanned_tokens of them, by launches launches
    seconds          from the first launch of each submission until its last score was there, summed
    p2p_bytes        of the keys scored, those a drive wrote straight into the device's memory
    host_key_bytes   of the keys scored, those that were read into host memory first
    fallback         why the software device scores in this one's place; None: it does not
    """

    stored_bytes: int = 0
    scoring_bytes: int = 0
    read_bytes: int = 0
    read_rows: int = 0
    scan_bytes: int = 0
    scanned_tokens: int = 0
    launches: int = 0
    seconds: float = 0.0
    p2p_bytes: int = 0
    host_key_bytes: int = 0
    fallback: str | None = None

    def scan(self, tokens: int, launches: int, nbytes: int, seconds: float = 0.0) -> None:
        """Keys of ``tokens`` tokens were scored, ``nbytes`` in all."""
        self.scanned_tokens += tokens
        self.launches += launches
        self.scan_bytes += nbytes
        self.seconds += seconds


class ScoreTicket(ABC):
    """Scores in flight. Taken once, block by block or all together; blocks come in the order of the runs.

    shared   whoever waits for them works on them as well
    """

    shared = False

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = tuple(runs)

    @abstractmethod
    def __iter__(self) -> Iterator[ScoreBlock]:
        """Score Blocks; blocks until the next one is there. Raises what went wrong on the device."""

    def merge_into(self, scores: npt.NDArray[np.int16]) -> None:
        """Put every token's score at its position in scores int16 [tokens], as the blocks arrive.

        DeviceError for a block that is out of place, or leaves tokens out.
        """
        expected = [
            (first, min(BLOCK, run.first + run.tokens - first), index, -(-run.tokens // BLOCK))
            for run in self.runs
            for index, first in enumerate(range(run.first, run.first + run.tokens, BLOCK))
        ]
        for place, block in itertools.zip_longest(expected, self):
            if block is None or place != (block.first, block.scanned, block.index, block.of):
                found = "no block" if block is None else f"a block of token {block.first}"
                raise DeviceError(f"the device returned {found} where a Score Block of {place} was due")
            if len(block.scores) != block.scanned:
                last = block.first + block.scanned - 1
                raise DeviceError(f"the device left out scores of tokens {block.first}-{last}")
            scores[block.first : block.first + block.scanned] = block.scores

    @abstractmethod
    def cancel(self) -> None:
        """Give up what has not been scored yet. The iterator then ends early."""


class ReadTicket(ABC):
    """A read in flight; rows of ``out`` must not be touched before ``ready`` tells of them, or ``wait`` returns.

    A ticket that is dropped is given up: from then on ``out`` is left alone.

    requests, nbytes   what the medium was asked for, gaps that are read over included; 0 where that is not known
    """

    @property
    def requests(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        return 0

    @abstractmethod
    def ready(self) -> npt.NDArray[np.int64]:
        """Ranks int64 (indices into ``out``) of rows that have arrived since the last call, in any order, checked.

        Waits until there is one at least; empty when all have been told. Raises what ``wait`` raises, once no more
        can come.
        """

    @abstractmethod
    def wait(self) -> None:
        """Until every row is in ``out`` and checked.

        CorruptRecordError: what was read is not what was written; ColdPoolError: it could not be read. Both name
        folder, layer and tokens.
        """


class Device(ABC):
    """A computational storage device. A driver is opened for one geometry and used by one engine."""

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What it can do."""

    @property
    @abstractmethod
    def counters(self) -> Counters:
        """What it did, still counting."""

    @abstractmethod
    def check_room(self, tokens: int, sequences: int, *, scored: bool = True) -> None:
        """ColdPoolFull unless ``tokens`` tokens in each of ``sequences`` sequences will fit, all layers together.

        DeviceFull where the cold folder has the room but the device's own memory has not.

        scored   whether they come with scoring keys
        """

    @abstractmethod
    def append(self, stream: Stream, first: int, rows: Rows, keys: ScoringKeys | None) -> None:
        """Keep rows uint8 [n, row_bytes] of the tokens first…first + n − 1, and their scoring keys.

        n and first are multiples of 64, and first is the number of tokens the stream holds. The arrays may be
        reused after the call. Blocks while too much is still unwritten (back-pressure).

        keys   None: this stream is not scored, or has its keys by ``rekey`` before it is. DeviceError unless all of
               its tokens have keys, or none.
        """

    @abstractmethod
    def rekey(self, stream: Stream, first: int, keys: ScoringKeys) -> None:
        """Keep these scoring keys for whole tiles of tokens first… that have been appended, in place of any others.

        In order, without a gap behind those that have keys. No score of the stream may be under way.
        """

    @abstractmethod
    def submit(self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run]) -> ScoreTicket:
        """Score the tokens of ``runs`` against a query; all of them have been appended, with keys."""

    def in_memory(self, stream: Stream, runs: Sequence[Run]) -> list[KeyRun] | None:  # noqa: ARG002
        """The keys of ``runs`` where they lie, for who scores them in the device's place and says so (``scanned``).

        None, as a rule: they are not in this process's memory. What lies there does not move.
        """
        return None

    def scanned(self, stream: Stream, tokens: int, runs: int, seconds: float) -> None:  # noqa: B027
        """Keys in this process's memory were scored in the device's place: count them."""

    @abstractmethod
    def read(self, stream: Stream, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
        """Read the rows of ascending positions int64 [n] into out uint8 [n, row_bytes]."""

    @abstractmethod
    def flush(self) -> None:
        """Until everything appended is on the medium; raises what went wrong on the way there."""

    @abstractmethod
    def close(self) -> None:
        """Stop all work and remove every file. May be called twice."""
