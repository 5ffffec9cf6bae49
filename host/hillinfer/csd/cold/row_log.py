"""The cold pool's log: rows of full precision, write-once, checksummed, one file per layer.

Rows of a sequence lie one after the other, each sequence in its own region of the (sparse) file, so that a position is
an offset and neighbours are one read. The checksum of every row stays in memory: a row that was lost, changed or
written in the wrong place cannot pass for the right one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.csd.cold.files import ColdFile
from hillinfer.csd.cold.write_behind import WriteBehind
from hillinfer.csd.contract import ReadTicket, Rows
from hillinfer.errors import ColdPoolError, CorruptRecordError
from hillinfer.kv.column import Column

T = TypeVar("T")


class RowLog:
    """The rows of one layer. Appended in order per sequence, never changed."""

    def __init__(
        self,
        layer: int,
        row_bytes: int,
        region_tokens: int,
        folder: Path,
        writer: WriteBehind,
        reader: _native.RowReader,
    ) -> None:
        self.layer = layer
        self.row_bytes = row_bytes
        self._region = region_tokens * row_bytes
        self.file = ColdFile(folder, direct=True)
        self._writer = writer
        self._rows = _native.RowFile(reader, self.file.fd, row_bytes, self.file.alignment if self.file.direct else 1)
        self._checksums: dict[int, Column[np.uint32]] = {}
        self._writing: dict[int, list[tuple[int, Future[None]]]] = {}  # behind which position, and what

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
        first = len(sums)
        writes = self._writer.write(self.file, rows.reshape(-1), sequence * self._region + first * self.row_bytes)
        sums.append(_native.checksums(rows))
        writing = [(start, write) for start, write in self._writing.get(sequence, ()) if not write.done()]
        self._writing[sequence] = writing + [(first, write) for write in writes]

    def read(self, sequence: int, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
        """Start reading the rows of ascending positions into out uint8 [n, row_bytes]."""
        self._writer.check()
        if self._writing and sequence in self._writing:
            self._await_writes(sequence, positions)
        base = sequence * self._region
        return _RowReading(self, sequence, self._rows.start(base, positions, self._checksums[sequence].values, out))

    def _await_writes(self, sequence: int, positions: npt.NDArray[np.int64]) -> None:
        """What was appended must be there to be read. Writes of other rows go on."""
        going_on = []
        for start, write in self._writing.pop(sequence):
            if len(positions) and start <= positions[-1]:
                write.result()
            elif not write.done():
                going_on.append((start, write))
        if going_on:
            self._writing[sequence] = going_on

    def failure(self, sequence: int, reading: _native.RowRead) -> ColdPoolError:
        """The error for a read that did not bring what was written."""
        if reading.failure is None:
            return self._corrupt(sequence, reading.bad[0], reading.bad[-1], "its checksum does not match")
        number, first, last = reading.failure
        if not number:
            return self._corrupt(sequence, first, last, "the file is shorter than what was written")
        return ColdPoolError(
            f"reading {self._tokens(sequence, first, last)} from the cold folder {self.file.folder} failed: "
            f"{os.strerror(number)}. Check the disk, or use another cold folder (--cold-dir)"
        )

    def _corrupt(self, sequence: int, first: int, last: int, why: str) -> CorruptRecordError:
        return CorruptRecordError(
            f"the cold folder {self.file.folder} returned wrong data for {self._tokens(sequence, first, last)}: {why}. "
            "Nothing was generated from it. Check the disk, or use another cold folder (--cold-dir)"
        )

    def _tokens(self, sequence: int, first: int, last: int) -> str:
        tokens = f"token {first}" if first == last else f"tokens {first}-{last}"
        return f"layer {self.layer}, sequence {sequence}, {tokens}"

    def close(self) -> None:
        self.file.close()


class _RowReading(ReadTicket):
    """Rows in flight. They arrive once, or fail once and for all."""

    __slots__ = ("_log", "_reading", "_sequence")

    def __init__(self, log: RowLog, sequence: int, reading: _native.RowRead) -> None:
        self._log, self._sequence, self._reading = log, sequence, reading

    @property
    def requests(self) -> int:
        return self._reading.requests

    @property
    def nbytes(self) -> int:
        return self._reading.nbytes

    def ready(self) -> npt.NDArray[np.int64]:
        ranks = self._guard(self._reading.ready)
        if not len(ranks):
            self.wait()
        return ranks

    def wait(self) -> None:
        if not self._guard(self._reading.finish):
            raise self._log.failure(self._sequence, self._reading)

    def _guard(self, call: Callable[[], T]) -> T:
        """A call of the native read."""
        try:
            return call()
        except RuntimeError as error:
            folder = self._log.file.folder
            raise ColdPoolError(
                f"reading the cold folder {folder} failed ({error}): check the disk, or use another (--cold-dir)"
            ) from None
