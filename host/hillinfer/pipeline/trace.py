"""What ran when: spans, written as a Chrome trace (chrome://tracing, ui.perfetto.dev).

Each kind of work has a track of its own there, so that what overlapped lies one above the other: scoring by the host
and by the device, reads, attention, looking ahead. All else is on the track of its thread.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from hillinfer.errors import SettingError
from hillinfer.whole_file import write_whole

TRACKS = {
    "look ahead": "lookahead",
    "host score": "host scores",
    "csd score": "device scores",
    "read": "cold reads",
    "read ahead": "reads ahead",
    "attend": "attention",
    "attend cold": "attention",
}
"""Where spans of a name are shown, whichever thread they ran on; in this order, below the threads."""

_NOTHING = contextlib.nullcontext()


@dataclass(frozen=True)
class Span:
    """``name`` ran on ``thread`` from ``start`` to ``end``, in seconds of ``time.perf_counter``."""

    name: str
    thread: str
    start: float
    end: float


@dataclass
class Trace:
    """Collects spans while ``enabled``; costs next to nothing otherwise."""

    enabled: bool = False
    spans: list[Span] = field(default_factory=list)

    def span(self, name: str) -> AbstractContextManager[object]:
        """Use as ``with trace.span("host score"):``."""
        return self._record(name) if self.enabled else _NOTHING

    @contextlib.contextmanager
    def _record(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.spans.append(Span(name, threading.current_thread().name, start, time.perf_counter()))

    def record_here(self, name: str, start: float, end: float) -> None:
        """Note work of this thread that has no place for a ``with``."""
        self.record(name, threading.current_thread().name, start, end)

    def record(self, name: str, thread: str, start: float, end: float) -> None:
        """Note work that was done elsewhere, by ``time.perf_counter``."""
        if self.enabled:
            self.spans.append(Span(name, thread, start, end))

    def write(self, path: Path) -> None:
        """Write the spans in Chrome's trace event format: complete events, microseconds from the first one on."""
        placed = _placed(self.spans)
        used = dict.fromkeys(track for track, _ in placed)
        shared = [track for kind in dict.fromkeys(TRACKS.values()) for track in used if track.startswith(kind)]
        tracks = [*(track for track in used if track not in shared), *shared]
        number = {track: i for i, track in enumerate(tracks)}
        begin = min((span.start for span in self.spans), default=0.0)
        told: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "hillinfer"}}]
        for track, i in number.items():
            told.append({"ph": "M", "name": "thread_name", "pid": 0, "tid": i, "args": {"name": track}})
            told.append({"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": i, "args": {"sort_index": i}})
        for track, span in placed:
            times = {"ts": (span.start - begin) * 1e6, "dur": (span.end - span.start) * 1e6}
            told.append({"ph": "X", "name": span.name, "pid": 0, "tid": number[track], **times})
        try:
            write_whole(path, json.dumps({"traceEvents": told, "displayTimeUnit": "ms"}))
        except OSError as error:
            raise SettingError(f"the trace {path} cannot be written ({error.strerror}): name another file") from None


def _placed(spans: list[Span]) -> list[tuple[str, Span]]:
    """By their start, each with its track: a second one where two go on at once and neither is within the other.

    A viewer shows nonsense otherwise: rows of two sequences of a batch come together, and those of two layers.
    """
    placed: list[tuple[str, Span]] = []
    ends: dict[str, list[list[float]]] = {}  # by kind and lane: when those end that are going on
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        kind = TRACKS.get(span.name, span.thread)
        lanes = ends.setdefault(kind, [])
        for going_on in lanes:
            while going_on and going_on[-1] <= span.start:
                going_on.pop()
        fits = [not going_on or span.end <= going_on[-1] for going_on in lanes]
        lane = fits.index(True) if True in fits else len(lanes)
        if lane == len(lanes):
            lanes.append([])
        lanes[lane].append(span.end)
        placed.append((f"{kind}, {lane + 1}" if lane else kind, span))
    return placed
