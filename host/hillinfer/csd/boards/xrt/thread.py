"""The thread that makes every call into XRT for one card.

A card that is dead, or an emulated one whose process has gone, leaves calls into XRT hanging for ever. They hang here,
on a thread that nobody needs: whoever waits for an answer has a deadline, and the card is *lost* when it passes. A
lost card is not touched again, as taking its objects apart would hang as well, or crash: so its objects stay, and the
process ends without XRT's own clearing up.

AMD's pyxrt before 2.20 holds the interpreter's lock during calls. Then a call that never returns stops the whole
process, and no deadline helps; those that do return are short here, because a launch is polled and never waited for.
"""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from hillinfer.errors import DeviceError, DeviceFull, HillInferError

T = TypeVar("T")

_kept: list[object] = []
"""Objects of lost cards: never taken apart, as that calls XRT."""


class Job(Generic[T]):
    """Work that was given to the thread. ``result`` may be asked for any number of times."""

    def __init__(self, what: str, work: Callable[[], T]) -> None:
        self.what, self._work = what, work
        self._done = threading.Lock()
        self._done.acquire()
        self._value: T | None = None
        self._error: BaseException | None = None

    def do(self) -> None:
        try:
            self._value = self._work()
        except BaseException as error:
            self._error = error
        finally:
            del self._work  # it may hold objects of XRT
            self._done.release()

    def wait(self, seconds: float) -> bool:
        if not self._done.acquire(timeout=seconds):
            return False
        self._done.release()
        return True

    def result(self, card: str) -> T:
        """What the work returned. DeviceError in XRT's own words when it failed; DeviceFull for want of memory."""
        error = self._error
        if error is None:
            return self._value  # type: ignore[return-value]
        if isinstance(error, HillInferError):
            raise error
        words = " ".join(str(error).split()) or type(error).__name__
        kind = DeviceFull if isinstance(error, MemoryError) else DeviceError
        raise kind(f"{card}: {self.what} failed: {words}") from error


def _end_without_xrt() -> None:
    """Have the process end, with whatever status, before XRT's destructors run: they ask the card, and wait."""
    libc = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):  # a C library without on_exit
        libc.on_exit(libc._exit, None)


class CardThread:
    """Work for one card, done in the order it was given.

    card      its name, for messages
    seconds   that a piece of work may take
    """

    def __init__(self, card: str, seconds: float) -> None:
        self.card, self.seconds = card, seconds
        self.lost: str | None = None
        self._jobs: queue.SimpleQueue[Job[Any] | None] = queue.SimpleQueue()
        # A daemon, or a hung call would keep the process from ending.
        self._thread = threading.Thread(target=_work, args=(self._jobs,), name=f"{card}-xrt", daemon=True)
        self._thread.start()

    def post(self, what: str, work: Callable[[], T]) -> Job[T]:
        """Give work to the thread and go on."""
        self.check()
        job = Job(what, work)
        self._jobs.put(job)
        return job

    def call(self, what: str, work: Callable[[], T], seconds: float | None = None) -> T:
        """Have work done, and its result. DeviceError when it fails, or when the card does not answer."""
        if threading.current_thread() is self._thread:  # garbage is collected anywhere, also here
            return work()
        job = self.post(what, work)
        limit = self.seconds if seconds is None else seconds
        if not job.wait(limit):
            self.lose(f"has not answered for {limit:g} s ({what})")
            self.check()
        return job.result(self.card)

    def lose(self, why: str) -> None:
        """From now on every call raises: the card is in a state that nobody knows."""
        if self.lost is None:
            self.lost = why
            _end_without_xrt()

    def check(self) -> None:
        """DeviceError when the card is lost."""
        if self.lost is not None:
            raise DeviceError(f"{self.card} {self.lost}: see dmesg, and reset the card (xbutil reset)")

    def keep(self, thing: object) -> None:
        """Hold an object of a lost card until the process ends."""
        _kept.append(thing)

    def stop(self) -> None:
        """Nothing more will be given to the thread."""
        self._jobs.put(None)
        if self.lost is None and threading.current_thread() is not self._thread:
            self._thread.join(self.seconds)


def _work(jobs: queue.SimpleQueue[Job[Any] | None]) -> None:
    while (job := jobs.get()) is not None:
        job.do()
        del job  # the next one may be long in coming
