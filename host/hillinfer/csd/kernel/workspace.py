"""Board memory of launches under way: their queries, exponents and Score Blocks, used again and again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hillinfer.csd.abi import Launch, Layout, unpack_scores
from hillinfer.csd.abi.numbers import BEAT_BYTES, BLOCK_TOKENS, NO_SCORE, SLOT_BEATS, TILE_TOKENS
from hillinfer.csd.kernel.board import Board, Buffer, Part, Port
from hillinfer.csd.kernel.buffers import BufferPool, pages
from hillinfer.kv.query import QuantisedQuery

_SLOT_BYTES = SLOT_BEATS * BEAT_BYTES


class Workspace:
    """A buffer of queries per ticket, and per piece one of exponents and one of Score Blocks.

    Where a piece takes several launches (more than 8 queries per KV head), their parts lie in one buffer, each at a
    page.

    piece_tokens   most tokens of a piece
    depth          pieces under way at most
    """

    def __init__(self, board: Board, layout: Layout, piece_tokens: int, depth: int) -> None:
        self._layout, self._depth = layout, depth
        query = Launch(TILE_TOKENS, 0, layout.shape, layout.format("max"), NO_SCORE, 0)
        self._query_bytes = pages(query.query_beats * BEAT_BYTES)
        self._blocks_bytes = pages(-(-piece_tokens // BLOCK_TOKENS) * _SLOT_BYTES)
        exponent_bytes = -(-piece_tokens // TILE_TOKENS) * layout.exponent_bytes
        # One ticket may have some of its pieces retired and others waiting, hence one query more.
        self.queries = BufferPool(board, layout.launches * self._query_bytes, Port.QUERY, depth + 1)
        self.exps = BufferPool(board, exponent_bytes, Port.EXPS, depth)
        self.blocks = BufferPool(board, layout.launches * self._blocks_bytes, Port.BLOCKS, depth)

    @property
    def board_bytes(self) -> int:
        """Memory of the board that all of it takes at most."""
        return (self._depth + 1) * (self.queries.nbytes + self.exps.nbytes + self.blocks.nbytes)

    def reserve(self) -> None:
        """Make sure of the buffers without which nothing can be scored. DeviceFull."""
        for pool in (self.queries, self.exps, self.blocks):
            pool.available()

    def upload_queries(self, buffer: Buffer, query: QuantisedQuery) -> None:
        """Bring the queries of each launch to the board."""
        for i, beats in enumerate(self._layout.pack_query(query)):
            packed, start = beats.reshape(-1), i * self._query_bytes
            buffer.host[start : start + len(packed)] = packed
            buffer.to_board(start, len(packed))

    def upload_exponents(self, buffer: Buffer, exponents: npt.NDArray[np.uint8]) -> None:
        """Bring the exponents of a piece's tiles, bytes [tiles, exponent_bytes], to the board.

        A piece begins at any tile, an argument of the kernel at a page: so exponents travel with each piece.
        """
        flat = exponents.reshape(-1)
        buffer.host[: len(flat)] = flat
        buffer.to_board(0, len(flat))

    def query_part(self, buffer: Buffer, launch: int) -> Part:
        """Where a piece's launch number so and so finds its queries."""
        return Part(buffer, launch * self._query_bytes)

    def blocks_part(self, buffer: Buffer, launch: int) -> Part:
        """Where it writes its Score Blocks."""
        return Part(buffer, launch * self._blocks_bytes)

    def scores(self, buffer: Buffer, launches: Sequence[Launch]) -> list[npt.NDArray[np.int16]]:
        """What each launch of a piece scored, int16 [tokens] each, checked. DeviceError."""
        scores = []
        for i, launch in enumerate(launches):
            start, nbytes = i * self._blocks_bytes, launch.slots * _SLOT_BYTES
            buffer.from_board(start, nbytes)
            slots = buffer.host[start : start + nbytes].view("<u4").reshape(launch.slots, -1)
            scores.append(unpack_scores(slots, launch.first, launch.tokens, launch.tag))
        return scores
