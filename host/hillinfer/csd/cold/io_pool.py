"""What reads and writes cold files for all layers, and the bound on what is still unwritten."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.csd.cold.files import ColdFile, aligned_buffer

_WRITERS = 4  # as many pieces as may be unwritten
_UNWRITTEN_BYTES = 8 << 20  # write-behind bound: appending waits beyond it
_PIECE_BYTES = 2 << 20  # of one write


class IoPool:
    """Threads that write, and a reader of many rows at once."""

    def __init__(self) -> None:
        self.executor = ThreadPoolExecutor(_WRITERS, thread_name_prefix="cold-io")
        self.reader = _native.RowReader()
        self.reading = threading.Lock()  # the reader is for one thread at a time
        self._room = threading.Condition()
        self._unwritten = 0
        self._failure: BaseException | None = None

    def write(self, file: ColdFile, data: npt.NDArray[np.uint8], offset: int) -> list[Future[None]]:
        """Write a copy of ``data`` later, piece by piece; raises an earlier write's failure."""
        starts = range(0, len(data), _PIECE_BYTES)
        return [self._write_piece(file, data[start : start + _PIECE_BYTES], offset + start) for start in starts]

    def _write_piece(self, file: ColdFile, data: npt.NDArray[np.uint8], offset: int) -> Future[None]:
        with self._room:
            self._room.wait_for(lambda: self._unwritten == 0 or self._unwritten + len(data) <= _UNWRITTEN_BYTES)
            self.check()
            copy = aligned_buffer(len(data))
            copy[:] = data
            writing = self.executor.submit(self._write, file, copy, offset)
            self._unwritten += len(data)
        return writing

    def check(self) -> None:
        """Raise the failure of an earlier write, if there was one."""
        if self._failure is not None:
            raise self._failure

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
            self.check()

    def close(self) -> None:
        self.executor.shutdown(wait=True, cancel_futures=True)
        self.reader.close()
