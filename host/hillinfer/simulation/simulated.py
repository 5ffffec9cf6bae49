"""What the timing model says of a run."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hillinfer.whole_file import write_whole


class Event(NamedTuple):
    """``name`` took ``resource`` from ``start`` to ``end``, seconds from the first step's begin."""

    resource: str
    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Simulated:
    """A run, timed.

    step_seconds   of every step
    busy           seconds that each resource worked, had it worked alone at full speed
    events         what ran when, in order of its end
    """

    step_seconds: Sequence[float]
    busy: Mapping[str, float]
    events: Sequence[Event]

    @property
    def seconds(self) -> float:
        """All steps."""
        return sum(self.step_seconds)

    @property
    def mean_step(self) -> float:
        """Seconds of a step on average: what a run takes, by its steps."""
        return self.seconds / len(self.step_seconds)

    @property
    def median_step(self) -> float:
        """Seconds of the step in the middle: what is held beside a measured median."""
        return statistics.median(self.step_seconds)

    @property
    def busy_shares(self) -> dict[str, float]:
        """The share of the time that each resource worked."""
        return {name: seconds / self.seconds for name, seconds in self.busy.items()}

    def write_timeline(self, path: Path) -> None:
        """Chrome's trace event format (chrome://tracing, ui.perfetto.dev): a track per resource, microseconds."""
        tracks = {name: number for number, name in enumerate(dict.fromkeys(event.resource for event in self.events))}
        told: list[dict[str, object]] = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "simulated"}}]
        for name, number in tracks.items():
            told.append({"ph": "M", "name": "thread_name", "pid": 0, "tid": number, "args": {"name": name}})
        for event in sorted(self.events, key=lambda event: (event.start, -event.end)):
            times = {"ts": event.start * 1e6, "dur": (event.end - event.start) * 1e6}
            told.append({"ph": "X", "name": event.name, "pid": 0, "tid": tracks[event.resource], **times})
        write_whole(path, json.dumps({"traceEvents": told, "displayTimeUnit": "ms"}))
