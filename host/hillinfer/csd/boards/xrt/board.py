"""The board: a card's memory and its compute unit of ``qk_score``, as the driver wants them."""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np

from hillinfer.csd.boards.xrt.binding import Binding
from hillinfer.csd.boards.xrt.launches import GRACE, Launches, LostError
from hillinfer.csd.boards.xrt.thread import CardThread, Job
from hillinfer.csd.kernel.board import Board, Buffer, Bytes, Part, Port, Running
from hillinfer.errors import DeviceError

PAGE = 4096
"""Sub-buffers begin at multiples of this, and buffers take whole ones."""

_PIECE = 16 << 20  # bytes of one copy: a deadline is for a piece, not for a buffer of any size
_PARTS = 1024  # sub-buffers that are kept for each buffer
_SLACK = 5.0  # seconds that the thread has on top of what a launch may take
_INT32 = range(-(1 << 31), 1 << 31)


class Memory:
    """A buffer object of XRT with its latest sub-buffers. On the card's thread only."""

    def __init__(self, binding: Binding, whole: Any) -> None:
        self._binding, self.whole = binding, whole
        self._parts: OrderedDict[int, Any] = OrderedDict()

    def at(self, offset: int) -> Any:
        """What to set as an argument that starts at ``offset``."""
        if not offset:
            return self.whole
        if offset in self._parts:
            self._parts.move_to_end(offset)
        else:
            self._parts[offset] = self._binding.part(self.whole, offset)
            if len(self._parts) > _PARTS:
                self._parts.popitem(last=False)
        return self._parts[offset]


class Card:
    """What was opened of a card. Everything that XRT made is here and goes with ``close``, on the card's thread."""

    def __init__(self, name: str, thread: CardThread, binding: Binding, device: Any, kernel: Any, held: Any) -> None:
        self.name, self.thread, self.binding, self.device = name, thread, binding, device
        self._held = (kernel, held)
        self.memories: dict[int, Memory] = {}
        self.launches: Launches | None = None
        self.running: list[XrtRun] = []
        self.closed = False

    def check(self) -> None:
        if self.closed:
            raise DeviceError(f"{self.name} is closed")
        self.thread.check()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        for run in list(self.running):
            try:
                run.wait()
            except DeviceError:  # whoever waits for it is told; here it only has to be over
                continue
        if self.thread.lost is None:
            try:
                self.thread.call("closing", self._take_apart)
            except DeviceError as error:
                self.thread.lose(str(error))
        if self.thread.lost is not None:
            self.thread.keep((self.memories, self.launches, self._held, self.device))
        self.thread.stop()

    def _take_apart(self) -> None:
        if self.launches is not None:
            self.launches.close()
        self.memories.clear()
        self._held = (None, None)
        self.device = None


class XrtBuffer(Buffer):
    """Memory of a card; ``host`` must not be looked at after ``close``."""

    def __init__(self, card: Card, key: int, view: memoryview, nbytes: int, *, p2p: bool) -> None:
        self._card, self.key, self._p2p = card, key, p2p
        self.nbytes = nbytes
        self.host: Bytes = np.frombuffer(view, np.uint8, nbytes)

    def to_board(self, offset: int, nbytes: int) -> None:
        self._copy("a copy to the card", self._card.binding.to_card, offset, nbytes)

    def from_board(self, offset: int, nbytes: int) -> None:
        self._copy("a copy from the card", self._card.binding.from_card, offset, nbytes)

    def _copy(self, what: str, copy: Any, offset: int, nbytes: int) -> None:
        card = self._card
        card.check()
        if offset < 0 or nbytes < 0 or offset + nbytes > self.nbytes:
            raise DeviceError(f"{card.name}: bytes {offset} to {offset + nbytes} of a buffer of {self.nbytes}")
        if self._p2p:
            return
        whole = card.memories[self.key].whole
        for at in range(offset, offset + nbytes, _PIECE):
            size = min(_PIECE, offset + nbytes - at)
            card.thread.call(what, lambda at=at, size=size: copy(whole, at, size))  # type: ignore[misc]

    def close(self) -> None:
        card = self._card
        self.host = np.empty(0, np.uint8)
        if not card.closed and card.thread.lost is None and self.key in card.memories:
            card.thread.call("freeing memory", lambda: card.memories.pop(self.key, None) and None)


class XrtRun(Running):
    """A launch on its way. It keeps its buffers until it has been waited for."""

    def __init__(self, card: Card, launches: Launches, started: Job[Any], buffers: tuple[Buffer, ...]) -> None:
        self._card, self._launches = card, launches
        self._started: Job[Any] | None = started
        self._buffers: tuple[Buffer, ...] | None = buffers
        self._since = time.monotonic()
        self._failure: DeviceError | None = None
        card.running.append(self)

    def wait(self) -> None:
        if self._buffers is not None:
            try:
                self._finish()
            except DeviceError as error:
                self._failure = error
            self._buffers = self._started = None
            self._card.running.remove(self)
        if self._failure is not None:
            raise self._failure

    def _finish(self) -> None:
        card, launches, started, since = self._card, self._launches, self._started, self._since
        assert started is not None

        def finish() -> None:
            launches.finish(started.result(card.name), since)

        thread = card.thread
        thread.check()
        try:
            thread.call("a launch", finish, launches.seconds + GRACE + _SLACK)
        except LostError as error:
            thread.lose(str(error))
        thread.check()


class XrtBoard(Board):
    """A card with ``qk_score`` on it. ``open_board`` makes one."""

    alignment = PAGE
    depth = 64

    def __init__(
        self,
        name: str,
        thread: CardThread,
        binding: Binding,
        device: Any,
        kernel: Any,
        held: Any,
        groups: tuple[int, ...],
        memory_bytes: int,
    ) -> None:
        self.name, self.memory_bytes = name, memory_bytes
        self._groups, self._keys = groups, 0
        self._card = Card(name, thread, binding, device, kernel, held)
        self._card.launches = Launches(name, binding, kernel, self.depth, thread.seconds)
        self._close = weakref.finalize(self, self._card.close)
        self.p2p = self._has_p2p()

    def allocate(self, nbytes: int, port: Port, *, p2p: bool = False) -> XrtBuffer:
        card = self._card
        card.check()
        if p2p and not self.p2p:
            raise DeviceError(f"{self.name} has no p2p buffers: xbutil configure --device … --p2p enable, and reboot")
        size, key = max(PAGE, -(-nbytes // PAGE) * PAGE), self._keys
        self._keys += 1

        def allocate() -> memoryview:
            memory = Memory(card.binding, card.binding.buffer(card.device, size, self._groups[port], p2p=p2p))
            card.memories[key] = memory
            return memoryview(memory.whole.map())

        view = card.thread.call(f"allocating {size} bytes", allocate)
        buffer = XrtBuffer(card, key, view, size, p2p=p2p)
        # Memory that was never written has wrong check bits; reading it is an error of the card (ECC).
        buffer.host[:] = 0
        buffer.to_board(0, size)
        return buffer

    def start(self, query: Part, keys: Part, exps: Part, blocks: Part, scalars: tuple[int, ...]) -> Running:
        card, launches = self._card, self._card.launches
        card.check()
        assert launches is not None
        if len(card.running) >= self.depth:
            raise DeviceError(f"{self.name} has {self.depth} launches under way: wait for one of them first")
        if wrong := [scalar for scalar in scalars if scalar not in _INT32]:
            raise DeviceError(f"{self.name}: {wrong[0]} is no 32-bit signed number, as the kernel's scalars are")
        parts = (query, keys, exps, blocks)
        places = [(_key_of(part, card), part.offset) for part in parts]

        def start() -> Any:
            return launches.start([card.memories[key].at(offset) for key, offset in places], scalars)

        job = card.thread.post("starting a launch", start)
        return XrtRun(card, launches, job, tuple(part.buffer for part in parts))

    def close(self) -> None:
        self._close()

    def _has_p2p(self) -> bool:
        """Whether P2P is enabled: XRT says so only by giving a buffer, or not."""
        card = self._card

        def try_one() -> None:
            card.binding.buffer(card.device, PAGE, self._groups[Port.KEYS], p2p=True).map()

        try:
            card.thread.call("asking for P2P", try_one)
        except DeviceError:
            card.thread.check()
            return False
        return True


def _key_of(part: Part, card: Card) -> int:
    buffer = part.buffer
    if not isinstance(buffer, XrtBuffer) or buffer.key not in card.memories:
        raise DeviceError(f"{card.name}: an argument is no open buffer of this card")
    if part.offset % PAGE or not 0 <= part.offset < buffer.nbytes:
        raise DeviceError(f"{card.name}: an argument starts at byte {part.offset} of its buffer, not at a page of it")
    return buffer.key
