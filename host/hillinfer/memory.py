"""How much memory a run really used: what the kernel counts as resident, not what the program believes."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

_CLEAR_REFS = Path("/proc/self/clear_refs")
_STATUS = Path("/proc/self/status")
_RESET_PEAK = "5"  # proc(5): "reset the peak resident set size to the current one"


class PeakMemory:
    """The most resident memory (RSS, bytes) this process had since ``restart``, its children included.

    RSS counts every page in memory: heap, the touched part of mapped files (weights, say), libraries. File
    pages that the system caches and nobody maps are not in it. Children (a storage device's worker) add what
    they hold at the moment of asking, so pages shared with a child count twice: the figure errs upwards.

    Where the kernel can't reset its high-water mark, ``windowed`` is False and the peak is that of the whole
    life of the process (``getrusage``).
    """

    def __init__(self) -> None:
        self.windowed = False
        self.restart()

    def restart(self) -> None:
        """Begin a new window: the peak is now what is resident now."""
        try:
            _CLEAR_REFS.write_text(_RESET_PEAK)
            self.windowed = _high_water_mark() is not None
        except OSError:
            self.windowed = False

    def peak_bytes(self) -> int:
        """Peak of this process in the window plus what its children hold now, in bytes."""
        own = _high_water_mark() if self.windowed else None
        return (_lifetime_peak() if own is None else own) + _children_bytes()


def _high_water_mark() -> int | None:
    """``VmHWM`` of this process in bytes; None where /proc does not tell."""
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def _lifetime_peak() -> int:
    import resource  # here: the module is missing on Windows, where only this function is

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _children_bytes() -> int:
    total = 0
    for child in psutil.Process().children(recursive=True):
        try:
            total += child.memory_info().rss
        except psutil.Error:  # it ended, or is not ours to look at
            continue
    return total
