"""Runs of the kernel: their arguments, and their way to a last state. All of it on the card's thread.

A launch is polled, in steps that grow with its length: ``run.wait`` blocks with the interpreter's lock in AMD's pyxrt,
and has no end in some versions.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import Any

from hillinfer.csd.boards.xrt.binding import Binding
from hillinfer.errors import DeviceError

_UNDER_WAY = {1: "new", 2: "queued", 3: "running", 7: "submitted"}
_COMPLETED = 4
_FAILED = {
    5: "ERT_CMD_STATE_ERROR: the card reports an error",
    6: "ERT_CMD_STATE_ABORT: it was aborted",
    8: "ERT_CMD_STATE_TIMEOUT: the card's scheduler gave it up, and reset the kernel",
    9: "ERT_CMD_STATE_NORESPONSE: the card does not respond, and could not be reset",
    10: "ERT_CMD_STATE_SKERROR: a kernel in software returned an error",
    11: "ERT_CMD_STATE_SKCRASHED: a kernel in software crashed",
}
_NO_RESPONSE = 9
_FIRST_STEP, _LAST_STEP = 20e-6, 1e-3
GRACE = 2.0
"""Seconds that an aborted launch has to end in."""


class LostError(DeviceError):
    """The launch did not end, so that the kernel may still write: the card cannot be used any more."""


class Launches:
    """Run objects, used in turn, so that one is long done when it is used again.

    depth     most launches at once
    seconds   that a launch may take once those before it are done
    """

    def __init__(self, card: str, binding: Binding, kernel: Any, depth: int, seconds: float) -> None:
        self._card, self._binding, self._kernel = card, binding, kernel
        self._depth, self.seconds = depth, seconds
        self._idle: deque[Any] = deque()
        self._made = 0
        self._latest = 0.0  # when the last launch was seen to end

    def start(self, pointers: Sequence[Any], scalars: Sequence[int]) -> Any:
        """Start a launch; ``pointers`` are buffers, in the order of the kernel's arguments."""
        if self._made < self._depth:
            run = self._binding.run(self._kernel)
            self._made += 1
        else:
            run = self._idle.popleft()
        for index, argument in enumerate([*pointers, *scalars]):
            run.set_arg(index, argument)
        run.start()
        return run

    def finish(self, run: Any, started: float) -> None:
        """Until a launch has ended. DeviceError when it failed, LostError when it did not end."""
        end = max(started, self._latest) + self.seconds
        state = self._poll(run, end)
        if state in _UNDER_WAY:
            aborted = self._binding.abort(run)
            state = self._poll(run, time.monotonic() + GRACE)
            if state in _UNDER_WAY:
                how = "it could not be aborted" if aborted else "this XRT cannot abort it"
                raise LostError(f"has not ended a launch within {self.seconds:g} s ({_UNDER_WAY[state]}; {how})")
        self._latest = time.monotonic()
        if state == _NO_RESPONSE:
            raise LostError(f"failed a launch: {_FAILED[state]}")
        self._idle.append(run)
        if state != _COMPLETED:
            raise DeviceError(
                f"{self._card} failed a launch: {_FAILED.get(state, f'state {state}')}. "
                "See dmesg and `xbutil examine --report all`"
            )

    def close(self) -> None:
        """Give up what XRT made; somebody may hold on to this object, and the card would stay open."""
        self._kernel = None
        self._idle.clear()

    def _poll(self, run: Any, end: float) -> int:
        step = _FIRST_STEP
        while (state := self._binding.state(run)) in _UNDER_WAY and time.monotonic() < end:
            time.sleep(step)
            step = min(1.5 * step, _LAST_STEP)
        return state
