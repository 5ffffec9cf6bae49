"""Writes behind the step: appending returns before the bytes are on the medium, within a bound of bytes."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from hillinfer.csd.cold.files import ColdFile, aligned_buffer
from hillinfer.errors import ColdPoolError

_WRITERS = 4  # as many pieces as may be unwritten
_UNWRITTEN_BYTES = 8 << 20  # appending waits beyond it
_PIECE_BYTES = 2 << 20  # of one write


class WriteBehind:
    """Threads that write copies of what they are given: at most ``bound`` bytes unwritten, and as many kept for reuse.

    A write that fails is the end: whoever waits or comes later is told of that first failure, once and for all.
    """

    def __init__(self, bound: int = _UNWRITTEN_BYTES) -> None:
        self._bound, self._piece = bound, min(_PIECE_BYTES, bound)
        self._executor = ThreadPoolExecutor(_WRITERS, thread_name_prefix="cold-write")
        self._room = threading.Condition()
        self._failure: BaseException | None = None
        self._spare: dict[int, list[npt.NDArray[np.uint8]]] = {}  # memory of pieces that are written, by size
        self._spare_bytes = 0
        self.unwritten = 0

    def write(self, file: ColdFile, data: npt.NDArray[np.uint8], offset: int) -> list[Future[None]]:
        """Write a copy of ``data`` uint8 [n] later, piece by piece, in any order; waits for room within the bound.

        Raises the failure of an earlier write.
        """
        starts = range(0, len(data), self._piece)
        return [self._write_piece(file, data[start : start + self._piece], offset + start) for start in starts]

    def _write_piece(self, file: ColdFile, data: npt.NDArray[np.uint8], offset: int) -> Future[None]:
        with self._room:
            self._room.wait_for(lambda: self._failure is not None or self.unwritten + len(data) <= self._bound)
            self.check()
            copy = self._memory(len(data))
            copy[:] = data
            writing = self._executor.submit(self._write, file, copy, offset)
            self.unwritten += len(data)
        return writing

    def _memory(self, nbytes: int) -> npt.NDArray[np.uint8]:
        """Fresh pages cost as much as the copy, so memory is used again: pieces have few sizes."""
        spare = self._spare.get(nbytes)
        if not spare:
            return aligned_buffer(nbytes)
        self._spare_bytes -= nbytes
        return spare.pop()

    def check(self) -> None:
        """Raise the failure of an earlier write, if there was one."""
        if self._failure is not None:
            raise self._failure

    def _write(self, file: ColdFile, data: npt.NDArray[np.uint8], offset: int) -> None:
        try:
            self.check()  # nothing is written behind a gap
            file.write(data, offset)
        except BaseException as error:
            with self._room:
                self._failure = self._failure or error
            raise
        finally:
            with self._room:
                self.unwritten -= len(data)
                if self._spare_bytes + len(data) > self._bound:  # of sizes that are no longer asked for
                    self._spare.clear()
                    self._spare_bytes = 0
                self._spare.setdefault(len(data), []).append(data)
                self._spare_bytes += len(data)
                self._room.notify_all()

    def drain(self) -> None:
        """Until nothing is unwritten; raises a write's failure."""
        with self._room:
            self._room.wait_for(lambda: self._failure is not None or self.unwritten == 0)
            self.check()

    def close(self) -> None:
        """Give up what is not being written yet. Whoever waits for room is told so."""
        with self._room:
            self._failure = self._failure or ColdPoolError("the cold pool is closed: make a new cache")
            self._room.notify_all()
        self._executor.shutdown(wait=True, cancel_futures=True)
