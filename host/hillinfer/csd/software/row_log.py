"""The cold pool's log: rows of full precision, write-once, checksummed, one file per layer.

Rows of a sequence lie one after the other, each sequence in its own region of the (sparse) file, so that a position is
an offset and neighbours are one read. The checksum of every row stays in memory: a row that was lost, changed or
written in the wrong place cannot pass for the right one.
"""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import xxhash

from hillinfer.csd.contract import ReadTicket, Rows
from hillinfer.csd.software.files import ColdFile, aligned_buffer
from hillinfer.errors import CorruptRecordError
from hillinfer.kv.column import Column

_DEPTH = 16  # reads in flight: where this loop in Python stops gaining (measured: 8: 1.97, 16: 1.74, 32: 2.3 ms / 108)
_GAP_BYTES = 4096  # read over a gap this small rather than issue another request
_PIECE_BYTES = 1 << 19  # split long runs, so that they are read in parallel
_UNWRITTEN_BYTES = 16 << 20  # write-behind bound: appending waits beyond it


class IoPool:
    """The threads that read and write, shared by all layers, and the bound on what is still unwritten."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(_DEPTH, thread_name_prefix="cold-io")
        self._room = threading.Condition()
        self._unwritten = 0
        self._failure: BaseException | None = None
        self._scratch = threading.local()

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

    def scratch(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """An aligned buffer of this thread's own."""
        buffer: npt.NDArray[np.uint8] | None = getattr(self._scratch, "buffer", None)
        if buffer is None or len(buffer) < nbytes:
            buffer = aligned_buffer(nbytes)
            self._scratch.buffer = buffer
        return buffer[:nbytes]

    def close(self) -> None:
        self.executor.shutdown(wait=True, cancel_futures=True)


class RowLog:
    """The rows of one layer. Appended in order per sequence, never changed."""

    def __init__(self, layer: int, row_bytes: int, region_tokens: int, folder: Path, pool: IoPool) -> None:
        self.layer = layer
        self.row_bytes = row_bytes
        self._region = region_tokens * row_bytes
        self.file = ColdFile(folder, direct=True)
        self._pool = pool
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
        self._writing[sequence] = [*writing, self._pool.write(self.file, rows.reshape(-1), offset)]

    def read(self, sequence: int, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
        """Start reading the rows of ascending positions into out uint8 [n, row_bytes]."""
        for write in self._writing.pop(sequence, ()):  # what was appended must be there to be read
            write.result()
        jobs = _spread(_runs(positions, self.row_bytes))
        return _Reading([self._pool.executor.submit(self._read, sequence, positions, out, runs) for runs in jobs])

    def _read(self, sequence: int, positions: npt.NDArray[np.int64], out: Rows, runs: list[tuple[int, int]]) -> None:
        """Read the runs positions[start:stop] one after the other."""
        expected = self._checksums[sequence].values
        base = sequence * self._region
        align = self.file.alignment
        for start, stop in runs:
            wanted = positions[start:stop]
            first, last = int(wanted[0]), int(wanted[-1])
            begin = base + first * self.row_bytes
            end = base + (last + 1) * self.row_bytes
            window_begin = begin // align * align
            window = self._pool.scratch(-(-(end - window_begin) // align) * align)
            if self.file.read(window, window_begin) < end - window_begin:
                raise self._corrupt(sequence, first, last, "the file is shorter than what was written")
            rows = window[begin - window_begin : end - window_begin].reshape(-1, self.row_bytes)
            target = out[start:stop]
            if last - first + 1 == stop - start:
                np.copyto(target, rows)
            else:
                np.take(rows, wanted - first, axis=0, out=target)
            found = _checksums(target)
            wrong = found != expected[wanted]
            if wrong.any():
                bad = wanted[wrong]
                raise self._corrupt(sequence, int(bad[0]), int(bad[-1]), "its checksum does not match")

    def _corrupt(self, sequence: int, first: int, last: int, why: str) -> CorruptRecordError:
        tokens = f"token {first}" if first == last else f"tokens {first}-{last}"
        return CorruptRecordError(
            f"the cold pool returned wrong data for layer {self.layer}, sequence {sequence}, {tokens}: {why}. "
            "Nothing was generated from it. Check the disk, or use another cold folder (--cold-dir)"
        )

    def close(self) -> None:
        self.file.close()


class _Reading(ReadTicket):
    def __init__(self, jobs: list[Future[None]]) -> None:
        self._jobs = jobs

    def wait(self) -> None:
        failure: BaseException | None = None
        for job in self._jobs:  # all of them, also after a failure: they write into the caller's memory
            failure = job.exception() or failure
        if failure is not None:
            raise failure


def _checksums(rows: Rows) -> npt.NDArray[np.uint32]:
    """A 32-bit checksum (low half of XXH3-64) of each row."""
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(row.data) & 0xFFFFFFFF for row in rows), np.uint32, len(rows))


def _runs(positions: npt.NDArray[np.int64], row_bytes: int) -> list[tuple[int, int]]:
    """Split ascending positions into runs positions[start:stop] that are worth one request each."""
    if not len(positions):
        return []
    gap = 1 + _GAP_BYTES // row_bytes
    cuts = np.flatnonzero(np.diff(positions) > gap) + 1
    edges = [0, *cuts.tolist(), len(positions)]
    limit = max(1, _PIECE_BYTES // row_bytes)
    runs = []
    for start, stop in itertools.pairwise(edges):
        for piece in range(start, stop, limit):
            runs.append((piece, min(piece + limit, stop)))
    return runs


def _spread(runs: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Deal runs out to at most ``_DEPTH`` jobs."""
    return [runs[i::_DEPTH] for i in range(min(_DEPTH, len(runs)))]
