"""Many reads at once: by Linux AIO where the kernel has it, by threads elsewhere.

A batch of windows (offset, length) of one file is read into one buffer. ``start`` returns as soon as the kernel has
room for all of them, ``wait`` when all bytes are there. Linux AIO takes a batch in one system call: no thread is woken
per read, no interpreter runs (108 random reads: 1.3 ms; 16 threads: 1.7 ms when nothing else runs, several times that
when something does).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from abc import ABC, abstractmethod
from concurrent.futures import Executor, Future

import numpy as np
import numpy.typing as npt

from hillinfer.errors import ColdPoolError

Offsets = npt.NDArray[np.int64]
Buffer = npt.NDArray[np.uint8]

_DEPTH = 512  # reads in flight in the kernel
_IOCB = np.dtype(  # struct iocb, linux/aio_abi.h (little-endian)
    [
        ("data", "<u8"),
        ("key", "<u4"),
        ("rw_flags", "<i4"),
        ("opcode", "<u2"),
        ("priority", "<i2"),
        ("fd", "<u4"),
        ("buffer", "<u8"),
        ("nbytes", "<u8"),
        ("offset", "<i8"),
        ("reserved", "<u8"),
        ("flags", "<u4"),
        ("resfd", "<u4"),
    ]
)
_EVENT = np.dtype([("data", "<u8"), ("object", "<u8"), ("result", "<i8"), ("result2", "<i8")])  # struct io_event
_CALLS = {  # io_setup, io_destroy, io_getevents, io_submit: libc has no wrappers for them
    "x86_64": (206, 207, 208, 209),
    "aarch64": (0, 1, 4, 2),
}


class Reading(ABC):
    """A batch in flight."""

    @abstractmethod
    def wait(self) -> None:
        """Until every window is in the buffer; ColdPoolError if one is not."""


class Reader(ABC):
    """Reads batches of windows. Used from one thread."""

    @abstractmethod
    def start(self, fd: int, offsets: Offsets, lengths: Offsets, buffer: Buffer) -> Reading:
        """Read ``lengths[i]`` bytes from ``offsets[i]`` on, one window behind the other in ``buffer``."""

    @abstractmethod
    def close(self) -> None:
        """Release what the reader holds; nothing may be in flight."""


def open_reader(otherwise: Reader) -> Reader:
    """The best reader of direct files this system has."""
    try:
        return KernelReader()
    except OSError:
        return otherwise


def _check(result: int, wanted: int, offset: int) -> None:
    if result < 0:
        raise ColdPoolError(f"reading the cold pool failed at byte {offset}: {os.strerror(-result)}")
    if result < wanted:
        raise ColdPoolError(f"reading the cold pool failed at byte {offset}: the file is shorter than what was written")


class ThreadReader(Reader):
    """A batch dealt out to threads, each reading its windows one after the other."""

    def __init__(self, threads: Executor, workers: int) -> None:
        self._threads, self._workers = threads, workers

    def start(self, fd: int, offsets: Offsets, lengths: Offsets, buffer: Buffer) -> Reading:
        ends = np.cumsum(lengths)
        windows = list(zip(offsets.tolist(), (ends - lengths).tolist(), ends.tolist(), strict=True))
        return _Threads(
            [
                self._threads.submit(self._read, fd, windows[i :: self._workers], buffer)
                for i in range(min(self._workers, len(windows)))
            ]
        )

    @staticmethod
    def _read(fd: int, windows: list[tuple[int, int, int]], buffer: Buffer) -> None:
        for offset, begin, end in windows:
            done = begin
            while done < end:
                try:
                    got = os.preadv(fd, [buffer[done:end].data], offset + done - begin)
                except OSError as error:
                    got = -(error.errno or errno.EIO)
                if got <= 0:
                    _check(got, end - done, offset)
                done += got

    def close(self) -> None:
        """The threads are their owner's."""


class _Threads(Reading):
    def __init__(self, jobs: list[Future[None]]) -> None:
        self._jobs = jobs

    def wait(self) -> None:
        failures = [job.exception() for job in self._jobs]  # all of them: they write into the buffer
        for failure in failures:
            if failure is not None:
                raise failure


class KernelReader(Reader):
    """Linux AIO (io_setup(2), io_submit(2), io_getevents(2)). OSError where the kernel or a sandbox refuses it."""

    def __init__(self) -> None:
        calls = _CALLS.get(platform.machine())
        if calls is None or not hasattr(os, "O_DIRECT"):
            raise OSError(errno.ENOSYS, "no Linux AIO on this system")
        self._setup, self._destroy, self._getevents, self._submit = calls
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._context = ctypes.c_ulong(0)
        self._call(self._setup, _DEPTH, ctypes.byref(self._context))
        self._events = np.zeros(_DEPTH, _EVENT)
        self._flying = 0
        self._batches: dict[int, _Batch] = {}
        self._next = 0

    def _call(self, number: int, *arguments: object) -> int:
        result = int(self._libc.syscall(ctypes.c_long(number), *arguments))
        if result < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return result

    def start(self, fd: int, offsets: Offsets, lengths: Offsets, buffer: Buffer) -> Reading:
        count = len(offsets)
        self._next = (self._next + 1) & 0x7FFFFFFF
        batch = _Batch(self, self._next, offsets, lengths)
        self._batches[self._next] = batch
        blocks = np.zeros(count, _IOCB)
        blocks["data"] = (self._next << 32) + np.arange(count)
        blocks["fd"] = fd
        blocks["buffer"] = buffer.ctypes.data + np.cumsum(lengths) - lengths
        blocks["nbytes"] = lengths
        blocks["offset"] = offsets
        pointers = (blocks.ctypes.data + np.arange(count) * _IOCB.itemsize).astype(np.uint64)
        batch.keep = (blocks, pointers, buffer)
        done = 0
        while done < count:
            many = min(count - done, _DEPTH - self._flying)
            if many == 0:
                self._reap()
                continue
            try:
                first = ctypes.c_void_p(pointers.ctypes.data + 8 * done)
                taken = self._call(self._submit, self._context, ctypes.c_long(many), first)
            except OSError as error:
                if error.errno != errno.EAGAIN or not self._flying:
                    batch.results[done:] = -(error.errno or errno.EIO)
                    batch.left -= count - done
                    break
                self._reap()
                continue
            done += taken
            self._flying += taken
        return batch

    def _reap(self) -> None:
        """Wait for at least one read, and note all that are done."""
        while True:
            events = ctypes.c_void_p(self._events.ctypes.data)
            try:
                got = self._call(self._getevents, self._context, ctypes.c_long(1), ctypes.c_long(_DEPTH), events, None)
                break
            except OSError as error:
                if error.errno != errno.EINTR:
                    raise ColdPoolError(f"reading the cold pool failed: {error.strerror}") from None
        self._flying -= got
        done = self._events[:got]
        for number in np.unique(done["data"] >> np.uint64(32)).tolist():
            mine = done[done["data"] >> np.uint64(32) == number]
            batch = self._batches[number]
            batch.results[(mine["data"] & np.uint64(0xFFFFFFFF)).astype(np.int64)] = mine["result"]
            batch.left -= len(mine)

    def finish(self, batch: _Batch) -> None:
        """Until a batch is complete."""
        while batch.left:
            self._reap()
        del self._batches[batch.number]

    def close(self) -> None:
        if self._context.value:
            self._call(self._destroy, self._context)  # waits for what is still in flight
            self._context = ctypes.c_ulong(0)


class _Batch(Reading):
    def __init__(self, reader: KernelReader, number: int, offsets: Offsets, lengths: Offsets) -> None:
        self._reader, self.number = reader, number
        self._offsets, self._lengths = offsets, lengths
        self.results = np.zeros(len(offsets), np.int64)
        self.left = len(offsets)
        self.keep: object = None  # memory the kernel reads and writes until the batch is complete

    def wait(self) -> None:
        self._reader.finish(self)
        self.keep = None
        wrong = np.flatnonzero(self.results < self._lengths)
        if len(wrong):
            i = int(wrong[0])
            _check(int(self.results[i]), int(self._lengths[i]), int(self._offsets[i]))
