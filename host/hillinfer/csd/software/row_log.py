"""The cold pool's log: rows of full precision, write-once, checksummed, one file per layer.

Rows of a sequence lie one after the other, each sequence in its own region of the (sparse) file, so that a position is
an offset and neighbours are one read. The checksum of every row stays in memory: a row that was lost, changed or
written in the wrong place cannot pass for the right one.
"""

from __future__ import annotations

import itertools
import math
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from hillinfer.csd.contract import ReadTicket, Rows
from hillinfer.csd.software.files import ColdFile, aligned_buffer
from hillinfer.csd.software.reading import open_reader
from hillinfer.errors import ColdPoolError, CorruptRecordError
from hillinfer.kv.column import Column

_THREADS = 16  # where this loop in Python stops gaining (measured: 8: 1.97, 16: 1.74, 32: 2.3 ms for 108 reads)
_GAP_BYTES = 4096  # read over a gap this small rather than issue another request
_PIECE_BYTES = 1 << 19  # split long runs, so that they are read in parallel
_UNWRITTEN_BYTES = 16 << 20  # write-behind bound: appending waits beyond it


class IoPool:
    """What reads and writes for all layers, and the bound on what is still unwritten."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(_THREADS, thread_name_prefix="cold-io")
        self.reader = open_reader(self.executor, _THREADS)
        self._room = threading.Condition()
        self._unwritten = 0
        self._failure: BaseException | None = None
        self._spare: list[npt.NDArray[np.uint8]] = []

    def write(self, file: ColdFile, data: npt.NDArray[np.uint8], offset: int) -> Future[None]:
        """Write a copy of ``data`` later; raises an earlier write's failure."""
        with self._room:
            self._room.wait_for(lambda: self._unwritten == 0 or self._unwritten + len(data) <= _UNWRITTEN_BYTES)
            if self._failure is not None:
                raise self._failure
            self._unwritten += len(data)
        copy = aligned_buffer(len(data))
        copy[:] = data
        return self.executor.submit(self._write, file, copy, offset)

    def _write(self, file: ColdFile, data: npt.NDArray[np.uint8], offset: int) -> None:
        try:
            file.write(data, offset)
        except BaseException as error:
            self._failure = error
            raise
        finally:
            with self._room:
                self._unwritten -= len(data)
                self._room.notify_all()

    def drain(self) -> None:
        """Until nothing is unwritten; raises a write's failure."""
        with self._room:
            self._room.wait_for(lambda: self._unwritten == 0)
            if self._failure is not None:
                raise self._failure

    def take(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """An aligned buffer of at least ``nbytes``, to be given back."""
        for i, buffer in enumerate(self._spare):
            if len(buffer) >= nbytes:
                return self._spare.pop(i)
        return aligned_buffer(1 << (nbytes - 1).bit_length())

    def give(self, buffer: npt.NDArray[np.uint8]) -> None:
        """Take a buffer back; the two largest are kept."""
        self._spare = sorted([*self._spare, buffer], key=len)[-2:]

    def close(self) -> None:
        self.executor.shutdown(wait=True, cancel_futures=True)
        self.reader.close()


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
        self._writing[sequence] = [*writing, self.pool.write(self.file, rows.reshape(-1), offset)]

    def read(self, sequence: int, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
        """Start reading the rows of ascending positions into out uint8 [n, row_bytes]."""
        for write in self._writing.pop(sequence, ()):  # what was appended must be there to be read
            write.result()
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
        self._reading = log.pool.reader.start(log.file.fd, begin, length, self._buffer)

    def wait(self) -> None:
        log, size = self._log, self._log.row_bytes
        try:
            self._reading.wait()
            grain = math.gcd(size, log.file.alignment)  # every row begins at a multiple of it
            grains = self._buffer[: len(self._buffer) // grain * grain].reshape(-1, grain)
            index = self._where[:, None] // grain + np.arange(size // grain)
            np.take(grains, index, axis=0, out=self._out.reshape(*index.shape, grain), mode="clip")
        except ColdPoolError as error:
            first, last = int(self._positions[0]), int(self._positions[-1])
            raise log.corrupt(self._sequence, first, last, str(error)) from None
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
