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

import numpy as np
import numpy.typing as npt

from hillinfer.csd.abi import Launch, Layout, unpack_scores
from hillinfer.csd.abi.numbers import BEAT_BYTES, BLOCK_TOKENS, NO_SCORE, SLOT_BEATS, TILE_TOKENS
from hillinfer.csd.assembly import AssembledTicket
from hillinfer.csd.contract import Counters, Record, Run, Stream
from hillinfer.csd.kernel.board import Board, Buffer, Part, Port, Running
from hillinfer.csd.kernel.buffers import BufferPool, pages
from hillinfer.csd.kernel.keys import Held, KeyStore
from hillinfer.csd.kernel.merge import merge
from hillinfer.errors import DeviceError
from hillinfer.kv.query import QuantisedQuery

_SLOT_BYTES = SLOT_BEATS * BEAT_BYTES


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
        self.parameters: Buffer | None = None
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


@dataclass
class _Piece:
    """Tokens that one launch scores, or several with up to 8 queries each; ``place``: of their scores in the ticket."""

    ticket: KernelTicket
    tokens: Run
    place: int
    keys: Held | None = None
    exps: Buffer | None = None
    blocks: Buffer | None = None
    launches: list[tuple[Launch, Running]] = field(default_factory=list)

    def ready(self) -> bool:
        """Whether its keys are there."""
        return self.keys is not None and self.keys.ready()


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
        query = Launch(TILE_TOKENS, 0, layout.shape, layout.format("max"), NO_SCORE, 0)
        self._query_bytes = pages(query.query_beats * BEAT_BYTES)
        self._blocks_bytes = pages(-(-keys.piece_tokens // BLOCK_TOKENS) * _SLOT_BYTES)
        exponent_bytes = -(-keys.piece_tokens // TILE_TOKENS) * layout.exponent_bytes
        # One ticket may have some of its pieces retired and others waiting, hence one query more.
        self._queries = BufferPool(board, layout.launches * self._query_bytes, Port.QUERY, self._depth + 1)
        self._exps = BufferPool(board, exponent_bytes, Port.EXPS, self._depth)
        self._blocks = BufferPool(board, layout.launches * self._blocks_bytes, Port.BLOCKS, self._depth)

    @property
    def board_bytes(self) -> int:
        """Memory of the board for queries, exponents and Score Blocks, at most."""
        return (self._depth + 1) * (self._queries.nbytes + self._exps.nbytes + self._blocks.nbytes)

    def reserve(self) -> None:
        """Make sure of the buffers without which nothing can be scored, before keys take the rest. DeviceFull."""
        with self.lock:
            for pool in (self._queries, self._exps, self._blocks):
                pool.available()

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
        while self._fetched and (self._fetched[0].ticket.given_up or self._fetched[0].ready()):
            self._start(self._fetched[0])
            self._running.append(self._fetched.popleft())

    def _prepare(self, piece: _Piece) -> bool:
        """Take what a piece needs and fetch its keys; False while something is not to be had yet."""
        ticket = piece.ticket
        if ticket.parameters is None:
            if not self._queries.available():
                return False
            ticket.parameters = self._queries.take()
            ticket.started = time.perf_counter()
            self._upload_queries(ticket, ticket.parameters)
        if not (self._exps.available() and self._blocks.available()):
            return False
        piece.keys = self._keys.fetch(ticket.stream, piece.tokens)
        if piece.keys is None:
            return False
        piece.exps, piece.blocks = self._exps.take(), self._blocks.take()
        return True

    def _start(self, piece: _Piece) -> None:
        """Launch a piece; waits for its keys. A failure is the ticket's."""
        ticket, tokens = piece.ticket, piece.tokens.tokens
        if ticket.given_up:
            return
        assert piece.keys is not None
        assert piece.exps is not None
        assert piece.blocks is not None
        assert ticket.parameters is not None
        shape, word = self._layout.shape, self._layout.format(ticket.query.reduce)
        try:
            keys = piece.keys.part()
            self._upload_exponents(piece, piece.exps)
            for i in range(self._layout.launches):
                tag = next(self._tags) & 0x7FFFFFFF
                launch = Launch(tokens, piece.tokens.first, shape, word, NO_SCORE, tag)
                query = Part(ticket.parameters, i * self._query_bytes)
                blocks = Part(piece.blocks, i * self._blocks_bytes)
                running = self._board.start(query, keys, Part(piece.exps), blocks, launch.scalars)
                piece.launches.append((launch, running))
                self._counters.launches += 1
                self._counters.scan_bytes += tokens * self._layout.row_bytes
            self._counters.scanned_tokens += tokens
        except Exception as error:
            self._fail(ticket, error)

    def _upload_queries(self, ticket: KernelTicket, buffer: Buffer) -> None:
        for i, beats in enumerate(self._layout.pack_query(ticket.query)):
            packed, start = beats.reshape(-1), i * self._query_bytes
            buffer.host[start : start + len(packed)] = packed
            buffer.to_board(start, len(packed))

    def _upload_exponents(self, piece: _Piece, buffer: Buffer) -> None:
        """A piece begins at any tile, an argument of the kernel at a page: so its exponents travel with it."""
        tiles = slice(piece.tokens.first // TILE_TOKENS, (piece.tokens.first + piece.tokens.tokens) // TILE_TOKENS)
        exponents = piece.ticket.exponents[tiles].reshape(-1)
        buffer.host[: len(exponents)] = exponents
        buffer.to_board(0, len(exponents))

    def _retire(self, piece: _Piece) -> None:
        """Wait for a piece's launches and take their scores; its buffers are free again."""
        ticket, usable = piece.ticket, True
        for _, running in piece.launches:
            try:
                running.wait()
            except Exception as error:
                usable = False  # the kernel may still write
                self._fail(ticket, error)
        if not ticket.given_up:
            try:
                scores = merge(self._scores(piece), ticket.query.reduce)
                ticket.scores[piece.place : piece.place + piece.tokens.tokens] = scores
                ticket.done += piece.tokens.tokens
            except Exception as error:
                self._fail(ticket, error)
        assert piece.keys is not None
        assert piece.exps is not None
        assert piece.blocks is not None
        piece.keys.release(usable=usable)
        self._exps.give(piece.exps, usable=usable)
        self._blocks.give(piece.blocks, usable=usable)
        self._leave(ticket, 1)
        if not ticket.pieces and not ticket.given_up:
            self._record("csd score", f"{self._board.name}-csd", ticket.started, time.perf_counter())

    def _scores(self, piece: _Piece) -> list[npt.NDArray[np.int16]]:
        """What each launch of a piece scored, int16 [tokens] each; checked."""
        assert piece.blocks is not None
        scores = []
        for i, (launch, _) in enumerate(piece.launches):
            start, nbytes = i * self._blocks_bytes, launch.slots * _SLOT_BYTES
            piece.blocks.from_board(start, nbytes)
            slots = piece.blocks.host[start : start + nbytes].view("<u4").reshape(launch.slots, -1)
            scores.append(unpack_scores(slots, launch.first, launch.tokens, launch.tag))
        return scores

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
        if not ticket.pieces and ticket.parameters is not None:
            self._queries.give(ticket.parameters, usable=ticket.failure is None)
            ticket.parameters = None
