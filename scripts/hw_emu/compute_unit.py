"""The compute unit as the host sees it: registers in s_axi_control, and a kernel that runs while others are served."""

from __future__ import annotations

import queue
import struct
import threading
from collections.abc import Callable, Mapping
from typing import Final

from .kernels import POINTERS, SCALARS

AP_START, AP_DONE, AP_IDLE, AP_READY, AP_CONTINUE = 1, 2, 4, 8, 16
CONTROL: Final = 0x00
_PATIENCE: Final = 0.002  # seconds that a poll of a running kernel is held back, so that polling costs nothing

Work = Callable[[tuple[int, int, int, int], tuple[int, ...]], bool]
"""Run one launch; false when it is to hang."""


class ComputeUnit:
    """ap_ctrl_chain: AP_START stays set while a launch runs; AP_DONE until AP_CONTINUE is written."""

    def __init__(self, registers: Mapping[str, int], work: Work, failed: Callable[[Exception], None]) -> None:
        self._offsets = registers
        self._work, self._failed = work, failed
        self._values: dict[int, int] = {}
        self._control = AP_IDLE
        self._started: queue.SimpleQueue[tuple[tuple[int, int, int, int], tuple[int, ...]] | None] = queue.SimpleQueue()
        self._done = threading.Event()
        self._hangs = False
        self._thread = threading.Thread(target=self._loop, name="kernel", daemon=True)
        self._thread.start()

    def write(self, offset: int, data: bytes) -> None:
        """Registers from ``offset`` on, four bytes each. A write that covers the control register comes to it last."""
        words = struct.unpack(f"<{len(data) // 4}I", data[: len(data) // 4 * 4])
        control = None
        for place, word in enumerate(words):
            if offset + 4 * place == CONTROL:
                control = word
            else:
                self._values[offset + 4 * place] = word
        if control is not None:
            self._command(control)

    def read(self, offset: int) -> int:
        """One register. A running kernel's control register is answered a little later, or when it is done."""
        if offset != CONTROL:
            return self._values.get(offset, 0)
        if self._control & AP_START and self._done.wait(_PATIENCE):
            self._done.clear()
            self._control = AP_DONE | AP_IDLE | AP_READY
        return self._control

    def release(self) -> None:
        """End a launch that hangs: who lets its buffers go has given it up."""
        if self._hangs:
            self._hangs = False
            self._done.set()

    def close(self) -> None:
        """Take no further launches; one that runs is left to itself."""
        self._started.put(None)

    def _command(self, word: int) -> None:
        if word & AP_CONTINUE and self._control & AP_DONE:
            self._control = AP_IDLE
        if word & AP_START:
            self._control = AP_START
            self._started.put(self._arguments())

    def _arguments(self) -> tuple[tuple[int, int, int, int], tuple[int, ...]]:
        value, at = self._values.get, self._offsets
        query, keys, exps, blocks = (value(at[name], 0) | value(at[name] + 4, 0) << 32 for name in POINTERS)
        scalars = tuple(_signed(value(at[name], 0)) for name in SCALARS)
        return (query, keys, exps, blocks), scalars

    def _loop(self) -> None:
        while (launch := self._started.get()) is not None:
            try:
                done = self._work(*launch)
            except Exception as error:
                self._failed(error)
                return
            if done:
                self._done.set()
            else:
                self._hangs = True


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
