"""The cold pool's log: rows of full precision, write-once, checksummed, one file per layer.

Rows of a sequence lie one after the other, each sequence in its own region of the (sparse) file, so that a position is
an offset and neighbours are one read. The checksum of every row stays in memory: a row that was lost, changed or
written in the wrong place cannot pass for the right one.
"""

from __future__ import annotations

import itertools
import math
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from hillinfer.csd.contract import ReadTicket, Rows
from hillinfer.csd.software.files import ColdFile
from hillinfer.csd.software.io_pool import IoPool
from hillinfer.errors import ColdPoolError, CorruptRecordError
from hillinfer.kv.column import Column

_GAP_BYTES = 4096  # read over a gap this small rather than issue another request
_PIECE_BYTES = 1 << 19  # split long runs, so that they are read in parallel


class RowLog:
    """The rows of one layer. Appended in order per sequence, never changed."""

    def __init__(self, layer: int, row_bytes: int, region_tokens: int, folder: Path, pool: IoPool) -> None:
        self.layer = layer
        self.row_bytes = row_bytes
        self._region = region_tokens * row_bytes
        self.file = ColdFile(folder, direct=True)
        self.pool = pool
        self._checksums: dict[int, Column[np.uint32]] = {}
        self._writing: dict[int, list[Future[None]]] = {}

    def length(self, sequence: int) -> int:
        """Rows of a sequence in the log."""
        return len(self._checksums.get(sequence, ()))

    def append(self, sequence: int, rows: Rows) -> None:
        """Add rows uint8 [n, row_bytes] (whole tiles) behind those the sequence has."""
        sums = self._checksums.setdefault(sequence, Column(np.uint32))
        offset = sequence * self._region + len(sums) * self.row_bytes
        sums.append(_checksums(rows))
        writing = [write for write in self._writing.get(sequence, ()) if not write.done()]
        self._writing[sequence] = [*writing, *self.pool.write(self.file, rows.reshape(-1), offset)]

    def read(self, sequence: int, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
        """Start reading the rows of ascending positions into out uint8 [n, row_bytes]."""
        self.pool.check()
        for write in self._writing.get(sequence, ()):  # what was appended must be there to be read
            write.result()
        self._writing.pop(sequence, None)
        return _RowReading(self, sequence, positions, out)

    def check(self, sequence: int, positions: npt.NDArray[np.int64], rows: Rows) -> None:
        """CorruptRecordError unless ``rows`` are what was written at ``positions``."""
        wrong = _checksums(rows) != self._checksums[sequence].values[positions]
        if wrong.any():
            bad = positions[wrong]
            raise self.corrupt(sequence, int(bad[0]), int(bad[-1]), "its checksum does not match")

    def base(self, sequence: int) -> int:
        """Where a sequence's region begins in the file."""
        return sequence * self._region

    def corrupt(self, sequence: int, first: int, last: int, why: str) -> CorruptRecordError:
        """The error for rows that did not come back as written."""
        tokens = f"token {first}" if first == last else f"tokens {first}-{last}"
        return CorruptRecordError(
            f"the cold pool returned wrong data for layer {self.layer}, sequence {sequence}, {tokens}: {why}. "
            "Nothing was generated from it. Check the disk, or use another cold folder (--cold-dir)"
        )

    def close(self) -> None:
        self.file.close()


class _RowReading(ReadTicket):
    """Rows in flight: runs of them are read as aligned windows into one buffer, then taken apart and checked."""

    def __init__(self, log: RowLog, sequence: int, positions: npt.NDArray[np.int64], out: Rows) -> None:
        self._log, self._sequence, self._positions, self._out = log, sequence, positions, out
        align, size, base = log.file.alignment, log.row_bytes, log.base(sequence)
        edges = _runs(positions, size)
        first, last = positions[edges[:-1]], positions[edges[1:] - 1]
        begin = (base + first * size) // align * align
        length = -(-(base + (last + 1) * size - begin) // align) * align
        place = np.cumsum(length) - length  # of each window in the buffer
        counts = np.diff(edges)
        self._where = base + positions * size + np.repeat(place - begin, counts)  # of each row in the buffer
        self._buffer = log.pool.take(int(length.sum()))
        reader = log.pool.reader if log.file.direct else log.pool.threads  # the kernel's own reads only direct files
        self._reading = reader.start(log.file.fd, begin, length, self._buffer)

    def wait(self) -> None:
        log, size = self._log, self._log.row_bytes
        try:
            self._reading.wait()
        except ColdPoolError as error:
            log.pool.give(self._buffer)  # after an interrupt it is not given back: it may still be written to
            first, last = int(self._positions[0]), int(self._positions[-1])
            raise log.corrupt(self._sequence, first, last, str(error)) from None
        try:
            grain = math.gcd(size, log.file.alignment)  # every row begins at a multiple of it
            grains = self._buffer[: len(self._buffer) // grain * grain].reshape(-1, grain)
            index = self._where[:, None] // grain + np.arange(size // grain)
            np.take(grains, index, axis=0, out=self._out.reshape(*index.shape, grain), mode="clip")
        finally:
            log.pool.give(self._buffer)
        log.check(self._sequence, self._positions, self._out)


def _checksums(rows: Rows) -> npt.NDArray[np.uint32]:
    """A 32-bit checksum (low half of XXH3-64) of each row."""
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(row.data) & 0xFFFFFFFF for row in rows), np.uint32, len(rows))


def _runs(positions: npt.NDArray[np.int64], row_bytes: int) -> npt.NDArray[np.int64]:
    """Edges of runs positions[edges[i]:edges[i + 1]] that are worth one request each; positions ascend."""
    if not len(positions):
        return np.zeros(1, np.int64)
    gap = 1 + _GAP_BYTES // row_bytes
    longest = max(1, _PIECE_BYTES // row_bytes)
    cuts = np.flatnonzero(np.diff(positions) > gap) + 1
    edges = np.concatenate([[0], cuts, [len(positions)]])
    lengths = np.diff(edges)
    if lengths.max(initial=0) <= longest:
        return edges
    pieces = [np.arange(start, stop, longest) for start, stop in itertools.pairwise(edges.tolist())]
    return np.concatenate([*pieces, edges[-1:]])
