"""What ran when: spans per thread, written as a Chrome trace (chrome://tracing, ui.perfetto.dev)."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

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
        """Write the spans in Chrome's trace event format (complete events, microseconds)."""
        threads = {thread: i for i, thread in enumerate(dict.fromkeys(span.thread for span in self.spans))}
        names = [
            {"ph": "M", "name": "thread_name", "pid": 0, "tid": i, "args": {"name": thread}}
            for thread, i in threads.items()
        ]
        events = [
            {
                "ph": "X",
                "name": span.name,
                "pid": 0,
                "tid": threads[span.thread],
                "ts": span.start * 1e6,
                "dur": (span.end - span.start) * 1e6,
            }
            for span in self.spans
        ]
        path.write_text(json.dumps({"traceEvents": names + events}))
