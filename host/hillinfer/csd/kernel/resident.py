"""Keys that stay in the board's memory: scanned at the speed of its DRAM."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from hillinfer.csd.contract import Run, Stream
from hillinfer.csd.kernel.board import Board, Buffer, Part
from hillinfer.csd.kernel.buffers import Arena
from hillinfer.csd.kernel.keys import Beats, Held, KeyStore

_SMALLEST = 1024  # tokens of a stream's first segment
_BLOCK_BYTES = 16 << 20  # of the arena


class _Segment(NamedTuple):
    first: int
    end: int
    buffer: Buffer
    offset: int


class _Resident(Held):
    def __init__(self, part: Part) -> None:
        self._part = part

    def ready(self) -> bool:
        return True

    def part(self) -> Part:
        return self._part

    def release(self, *, usable: bool = True) -> None:
        """Keys are written once: whatever still reads them may."""


class ResidentKeys(KeyStore):
    """A stream's keys lie in segments of 1024, 1024, 2048, 4096, … tokens, up to ``chunk``: a short one wastes little,
    a long one is a few launches.

    chunk   most tokens of a segment and of a launch, a power of two
    """

    def __init__(self, board: Board, layers: int, row_bytes: int, chunk: int) -> None:
        self.piece_tokens = chunk
        self._layers, self._row_bytes = layers, row_bytes
        whole = chunk * row_bytes
        self._arena = Arena(board, min(chunk, _SMALLEST) * row_bytes, max(1, _BLOCK_BYTES // whole) * whole)
        self._segments: dict[Stream, list[_Segment]] = {}

    def _end(self, token: int) -> int:
        """Where the segment of a token ends."""
        if token < self.piece_tokens:
            return min(self.piece_tokens, max(_SMALLEST, 1 << token.bit_length()))
        return (token // self.piece_tokens + 1) * self.piece_tokens

    def board_bytes(self, tokens: int, sequences: int) -> int:
        if not tokens:
            return 0
        spare = self.piece_tokens  # what the arena may leave unused
        return (self._layers * sequences * self._end(tokens - 1) + spare) * self._row_bytes

    def file_bytes(self, tokens: int, sequences: int) -> int:  # noqa: ARG002
        return 0

    def append(self, stream: Stream, first: int, keys: Beats) -> None:
        segments = self._segments.setdefault(stream, [])
        stop, end = segments[-1].end if segments else 0, first + len(keys) // self._row_bytes
        while stop < end:
            segments.append(
                _Segment(stop, self._end(stop), *self._arena.take((self._end(stop) - stop) * self._row_bytes))
            )
            stop = segments[-1].end
        self.replace(stream, first, keys)

    def replace(self, stream: Stream, first: int, keys: Beats) -> None:
        written, end = 0, first + len(keys) // self._row_bytes
        while first < end:
            segment = self._segment(stream, first)
            tokens = min(end, segment.end) - first
            nbytes = tokens * self._row_bytes
            offset = segment.offset + (first - segment.first) * self._row_bytes
            segment.buffer.host[offset : offset + nbytes] = keys[written : written + nbytes]
            segment.buffer.to_board(offset, nbytes)
            first, written = first + tokens, written + nbytes

    def cut(self, run: Run) -> Iterator[Run]:
        first, end = run.first, run.first + run.tokens
        while first < end:
            stop = min(end, self._end(first))
            yield Run(first, stop - first)
            first = stop

    def fetch(self, stream: Stream, piece: Run) -> Held:
        segment = self._segment(stream, piece.first)
        offset = segment.offset + (piece.first - segment.first) * self._row_bytes
        return _Resident(Part(segment.buffer, offset))

    def _segment(self, stream: Stream, token: int) -> _Segment:
        """The segment that has a token's keys."""
        segments = self._segments[stream]
        return segments[bisect_right(segments, token, key=lambda each: each.first) - 1]

    def flush(self) -> None:
        """Nothing is on its way to a file."""

    def stop(self) -> None:
        """No work of its own."""
