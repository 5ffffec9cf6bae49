"""Launches in the order they were asked for: some on the board, the rest waiting; Score Blocks back as they complete.

Nothing runs here of its own: whoever asks for scores moves the queue on. A card works through what was started without
being asked, and a thread would only fight the caller for the interpreter (decisions 16 and 21).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hillinfer.csd.abi import Launch, Layout
from hillinfer.csd.abi.numbers import NO_SCORE, TILE_TOKENS
from hillinfer.csd.assembly import AssembledTicket
from hillinfer.csd.contract import Counters, Record, Run, Stream
from hillinfer.csd.kernel.board import Board, Buffer, Part, Running
from hillinfer.csd.kernel.keys import Held, KeyStore
from hillinfer.csd.kernel.merge import merge
from hillinfer.csd.kernel.workspace import Workspace
from hillinfer.errors import DeviceError
from hillinfer.kv.query import QuantisedQuery


class KernelTicket(AssembledTicket):
    """Scores of one submission: the queue moves on while somebody waits for them."""

    def __init__(
        self,
        stream: Stream,
        query: QuantisedQuery,
        runs: Sequence[Run],
        exponents: npt.NDArray[np.uint8],
        queue: LaunchQueue,
    ) -> None:
        super().__init__(runs)
        self.stream, self.query, self.exponents, self._queue = stream, query, exponents, queue
        self.done = 0  # scores that are there, from the start
        self.pieces = 0  # that are not retired yet
        self.queries: Buffer | None = None  # on the board, from its first piece to its last
        self.failure: Exception | None = None
        self.cancelled = False
        self.started = 0.0

    @property
    def given_up(self) -> bool:
        """Whether nobody will ask for what has not been scored yet."""
        return self.cancelled or self.failure is not None

    def advance(self, count: int) -> bool:
        return self._queue.advance(self, count)

    def cancel(self) -> None:
        self._queue.cancel(self)


class _Holdings(NamedTuple):
    """What a piece has while it is under way."""

    keys: Held
    queries: Buffer
    exps: Buffer
    blocks: Buffer


@dataclass
class _Piece:
    """Tokens that one launch scores, or several with up to 8 queries each; ``place``: of their scores in the ticket."""

    ticket: KernelTicket
    tokens: Run
    place: int
    held: _Holdings | None = None
    launches: list[tuple[Launch, Running]] = field(default_factory=list)

    @property
    def holdings(self) -> _Holdings:
        assert self.held is not None
        return self.held


class LaunchQueue:
    """The way of every piece: waiting → fetched (its keys are coming) → running → retired.

    lock       of the board: it takes one call at a time, and tickets may be taken by several threads
    depth      pieces fetched or running at once; one that finds the queue full waits
    counters   launches, scan_bytes and scanned_tokens are counted here
    """

    def __init__(
        self, board: Board, layout: Layout, keys: KeyStore, depth: int, counters: Counters, record: Record
    ) -> None:
        self._board, self._layout, self._keys = board, layout, keys
        self._counters, self._record = counters, record
        self._depth = max(1, min(depth, board.depth // layout.launches))
        self._tags = itertools.count(1)
        self.lock = threading.RLock()
        self._waiting: deque[_Piece] = deque()
        self._fetched: deque[_Piece] = deque()
        self._running: deque[_Piece] = deque()
        self._closed = False
        self._space = Workspace(board, layout, keys.piece_tokens, self._depth)

    @property
    def board_bytes(self) -> int:
        """Memory of the board for queries, exponents and Score Blocks, at most."""
        return self._space.board_bytes

    def reserve(self) -> None:
        """Make sure of what nothing can be scored without, before keys take the rest. DeviceFull."""
        with self.lock:
            self._space.reserve()

    # ---- what tickets ask for

    def submit(
        self, stream: Stream, query: QuantisedQuery, runs: Sequence[Run], exponents: npt.NDArray[np.uint8]
    ) -> KernelTicket:
        """Queue the tokens of ``runs``; exponents int8 [tiles, exponent_bytes] of the whole stream, as bytes."""
        ticket = KernelTicket(stream, query, runs, exponents, self)
        with self.lock:
            self._check_open()
            place = 0
            for run in runs:
                for piece in self._keys.cut(run):
                    self._waiting.append(_Piece(ticket, piece, place))
                    ticket.pieces += 1
                    place += piece.tokens
            self._fill()
        return ticket

    def advance(self, ticket: KernelTicket, count: int) -> bool:
        """Until the first ``count`` scores of a ticket are there; see AssembledTicket."""
        with self.lock:
            while not ticket.cancelled and ticket.done < count:
                if ticket.failure is not None:
                    raise ticket.failure
                self._check_open()
                self._step()
            return not ticket.cancelled

    def cancel(self, ticket: KernelTicket) -> None:
        """Drop what waits; what runs is let run, and nobody looks at it."""
        with self.lock:
            ticket.cancelled = True
            self._drop(ticket)

    def close(self) -> None:
        """Refuse everything from now on. What runs is the board's business."""
        with self.lock:
            self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise DeviceError("the device is closed: make a new cache")

    # ---- the way of a piece

    def _step(self) -> None:
        """Wait until one piece is further."""
        self._fill()
        if self._running:
            self._retire(self._running[0])
            self._running.popleft()
        elif self._fetched:
            self._start(self._fetched[0])
            self._running.append(self._fetched.popleft())
        else:
            raise DeviceError("the device lost a launch: make a new cache")
        self._fill()

    def _fill(self) -> None:
        """Start everything that can be started without waiting."""
        while self._waiting and len(self._fetched) + len(self._running) < self._depth:
            piece = self._waiting[0]
            try:
                if not self._prepare(piece):
                    break
            except Exception as error:
                self._fail(piece.ticket, error)
                continue
            self._fetched.append(self._waiting.popleft())
        while self._fetched and (self._fetched[0].ticket.given_up or self._fetched[0].holdings.keys.ready()):
            self._start(self._fetched[0])
            self._running.append(self._fetched.popleft())

    def _prepare(self, piece: _Piece) -> bool:
        """Take what a piece needs and fetch its keys; False while something is not to be had yet."""
        ticket, space = piece.ticket, self._space
        if ticket.queries is None:
            if not space.queries.available():
                return False
            ticket.queries = space.queries.take()
            ticket.started = time.perf_counter()
            space.upload_queries(ticket.queries, ticket.query)
        if not (space.exps.available() and space.blocks.available()):
            return False
        keys = self._keys.fetch(ticket.stream, piece.tokens)
        if keys is None:
            return False
        piece.held = _Holdings(keys, ticket.queries, space.exps.take(), space.blocks.take())
        return True

    def _start(self, piece: _Piece) -> None:
        """Launch a piece; waits for its keys. A failure is the ticket's."""
        ticket, (first, tokens), held, space = piece.ticket, piece.tokens, piece.holdings, self._space
        if ticket.given_up:
            return
        shape, word = self._layout.shape, self._layout.format(ticket.query.reduce)
        try:
            keys = held.keys.part()
            tiles = slice(first // TILE_TOKENS, (first + tokens) // TILE_TOKENS)
            space.upload_exponents(held.exps, ticket.exponents[tiles])
            for i in range(self._layout.launches):
                launch = Launch(tokens, first, shape, word, NO_SCORE, next(self._tags) & 0x7FFFFFFF)
                query, blocks = space.query_part(held.queries, i), space.blocks_part(held.blocks, i)
                running = self._board.start(query, keys, Part(held.exps), blocks, launch.scalars)
                piece.launches.append((launch, running))
                self._counters.launches += 1
                self._counters.scan_bytes += tokens * self._layout.row_bytes
            self._counters.scanned_tokens += tokens
        except Exception as error:
            self._fail(ticket, error)

    def _retire(self, piece: _Piece) -> None:
        """Wait for a piece's launches and take their scores; its buffers are free again."""
        ticket, held, usable = piece.ticket, piece.holdings, True
        for _, running in piece.launches:
            try:
                running.wait()
            except Exception as error:
                usable = False  # the kernel may still write
                self._fail(ticket, error)
        if not ticket.given_up:
            try:
                scores = merge(self._scores(held.blocks, piece), ticket.query.reduce)
                ticket.scores[piece.place : piece.place + piece.tokens.tokens] = scores
                ticket.done += piece.tokens.tokens
            except Exception as error:
                self._fail(ticket, error)
        held.keys.release(usable=usable)
        self._space.exps.give(held.exps, usable=usable)
        self._space.blocks.give(held.blocks, usable=usable)
        self._leave(ticket, 1)
        if not ticket.pieces and not ticket.given_up:
            self._record("csd score", f"{self._board.name}-csd", ticket.started, time.perf_counter())

    def _scores(self, blocks: Buffer, piece: _Piece) -> list[npt.NDArray[np.int16]]:
        """What each launch of a piece scored; DeviceError with the board's name."""
        try:
            return self._space.scores(blocks, [launch for launch, _ in piece.launches])
        except DeviceError as error:
            name = self._board.name
            raise DeviceError(f"{name}: {error}. It failed, or is gone: see dmesg and hillinfer doctor") from error

    def _fail(self, ticket: KernelTicket, error: Exception) -> None:
        """The first failure is the ticket's; what waits of it is dropped."""
        ticket.failure = ticket.failure or error
        self._drop(ticket)

    def _drop(self, ticket: KernelTicket) -> None:
        kept = deque(piece for piece in self._waiting if piece.ticket is not ticket)
        dropped = len(self._waiting) - len(kept)
        self._waiting = kept
        self._leave(ticket, dropped)

    def _leave(self, ticket: KernelTicket, pieces: int) -> None:
        """So many pieces of a ticket are over; with the last its queries are."""
        ticket.pieces -= pieces
        if not ticket.pieces and ticket.queries is not None:
            self._space.queries.give(ticket.queries, usable=ticket.failure is None)
            ticket.queries = None
