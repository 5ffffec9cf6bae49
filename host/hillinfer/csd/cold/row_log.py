"""The cold pool's log: rows of full precision, write-once, checksummed, one file per layer.

Rows of a sequence lie one after the other, each sequence in its own region of the (sparse) file, so that a position is
an offset and neighbours are one read. The checksum of every row stays in memory: a row that was lost, changed or
written in the wrong place cannot pass for the right one.
"""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.csd.cold.files import ColdFile
from hillinfer.csd.cold.io_pool import IoPool
from hillinfer.csd.contract import ReadTicket, Rows
from hillinfer.errors import ColdPoolError, CorruptRecordError
from hillinfer.kv.column import Column


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

    @property
    def sequences(self) -> list[int]:
        """The sequences that have rows in the log."""
        return list(self._checksums)

    def length(self, sequence: int) -> int:
        """Rows of a sequence in the log."""
        return len(self._checksums.get(sequence, ()))

    def append(self, sequence: int, rows: Rows) -> None:
        """Add rows uint8 [n, row_bytes] (whole tiles) behind those the sequence has."""
        sums = self._checksums.setdefault(sequence, Column(np.uint32))
        offset = sequence * self._region + len(sums) * self.row_bytes
        sums.append(_native.checksums(rows))
        writing = [write for write in self._writing.get(sequence, ()) if not write.done()]
        self._writing[sequence] = [*writing, *self.pool.write(self.file, rows.reshape(-1), offset)]

    def read(self, sequence: int, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
        """Start reading the rows of ascending positions into out uint8 [n, row_bytes]."""
        self.pool.check()
        for write in self._writing.get(sequence, ()):  # what was appended must be there to be read
            write.result()
        self._writing.pop(sequence, None)
        file = self.file
        with self.pool.reading:
            reading = self.pool.reader.start(
                file.fd, sequence * self._region, self.row_bytes, file.alignment, file.direct, positions
            )
        return _RowReading(self, sequence, positions, reading, out)

    def finish(self, sequence: int, positions: npt.NDArray[np.int64], reading: _native.RowRead, out: Rows) -> None:
        """Until the rows are in ``out``; CorruptRecordError unless they are what was written."""
        try:
            with self.pool.reading:
                failure, bad = self.pool.reader.finish(reading, out, self._checksums[sequence].values)
        except RuntimeError as error:
            raise ColdPoolError(f"reading the cold pool failed ({error}): check the disk") from None
        if failure:
            raise self._corrupt(sequence, int(positions[0]), int(positions[-1]), failure)
        if bad:
            raise self._corrupt(sequence, bad[0], bad[-1], "its checksum does not match")

    def _corrupt(self, sequence: int, first: int, last: int, why: str) -> CorruptRecordError:
        tokens = f"token {first}" if first == last else f"tokens {first}-{last}"
        return CorruptRecordError(
            f"the cold pool returned wrong data for layer {self.layer}, sequence {sequence}, {tokens}: {why}. "
            "Nothing was generated from it. Check the disk, or use another cold folder (--cold-dir)"
        )

    def close(self) -> None:
        self.file.close()


class _RowReading(ReadTicket):
    """Rows in flight. They arrive once, or fail once and for all: the native reader forgets a read that is over."""

    def __init__(
        self, log: RowLog, sequence: int, positions: npt.NDArray[np.int64], reading: _native.RowRead, out: Rows
    ) -> None:
        self._log, self._sequence, self._positions, self._out = log, sequence, positions, out
        self._reading: _native.RowRead | None = reading
        self._failure: ColdPoolError | None = None

    def wait(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._reading is None:
            return
        reading, self._reading = self._reading, None
        try:
            self._log.finish(self._sequence, self._positions, reading, self._out)
        except ColdPoolError as error:
            self._failure = error
            raise
