"""What a run did, step by step and layer by layer: the work that the timing model times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hillinfer.errors import SettingError
from hillinfer.simulation.shape import Shape


@dataclass(frozen=True)
class LayerStep:
    """One layer at one decode step, the sequences of the batch together.

    tokens          cached
    host_scored, device_scored   of them, by who scored their keys; none under a policy that scores nothing
    attended        rows attended, the step's own not counted: those on the compute device, in the hot pool, and cold
    hot_rows        of them in the hot pool
    cold_rows       of them in the cold pool only
    cold_requests   reads they took, neighbours and small gaps being one; read_rows: with the gaps
    moved_rows      entered the hot pool behind the step
    written_rows    left the compute device for the log
    head_rows       rows that a KV head attends to, on average; 0: each attends to all
    ahead_rows      read before the step asked for them (lookahead), with the gaps; ahead_requests: reads they took
    ahead_hits      cold rows that were among them: ``cold_requests`` and ``read_rows`` are of the others
    """

    tokens: int
    host_scored: int = 0
    device_scored: int = 0
    attended: int = 0
    hot_rows: int = 0
    cold_rows: int = 0
    cold_requests: int = 0
    read_rows: int = 0
    moved_rows: int = 0
    written_rows: int = 0
    head_rows: int = 0
    ahead_rows: int = 0
    ahead_requests: int = 0
    ahead_hits: int = 0

    @property
    def scored(self) -> int:
        """Tokens whose keys were scored."""
        return self.host_scored + self.device_scored

    @property
    def newest_rows(self) -> int:
        """Rows attended that are on the compute device anyway."""
        return self.attended - self.hot_rows - self.cold_rows

    @property
    def each_head(self) -> int:
        """Rows that a KV head attends to, on average."""
        return self.head_rows or self.attended

    @property
    def asked_rows(self) -> int:
        """Rows that are read when the step asks for them, with the gaps."""
        return max(self.cold_rows - self.ahead_hits, self.read_rows)

    def times(self, factor: float) -> LayerStep:
        """As much of everything, to whole numbers; what adds up goes on to do so."""
        tokens, host = round(self.tokens * factor), round(self.host_scored * factor)
        device = round((self.host_scored + self.device_scored) * factor) - host
        hot, cold = round(self.hot_rows * factor), round(self.cold_rows * factor)
        attended = max(hot + cold, min(tokens, round(self.attended * factor)))
        hits = min(cold, round(self.ahead_hits * factor))
        missed = cold - hits
        read = max(missed, round(self.read_rows * factor))
        requests = min(missed, round(self.cold_requests * factor)) or min(1, missed)
        moved, written = round(self.moved_rows * factor), round(self.written_rows * factor)
        heads, ahead = min(attended, round(self.head_rows * factor)), round(self.ahead_rows * factor)
        early = min(ahead, round(self.ahead_requests * factor)) or min(1, ahead)
        return LayerStep(
            tokens, host, device, attended, hot, cold, requests, read, moved, written, heads, ahead, early, hits
        )


@dataclass(frozen=True)
class Positions:
    """Which tokens, for those who draw them; a batch of one.

    selected   [steps][layers]: ascending positions int64, the union over heads
    hot        [steps][layers]: bool [tokens], in the hot pool or on the compute device when the step began
    host       [steps][layers]: bool [tiles of 64 tokens], scored by the host
    pinned     [steps][layers]: the first token that is pinned for being recent
    """

    selected: Sequence[Sequence[npt.NDArray[np.int64]]]
    hot: Sequence[Sequence[npt.NDArray[np.bool_]]]
    host: Sequence[Sequence[npt.NDArray[np.bool_]]]
    pinned: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Trace:
    """Steps of a run, each with its layers.

    model, policy   what ran; settings: its other settings, as written
    steps           [steps][layers]
    sequences       the batch
    positions       where they were recorded
    """

    model: str
    policy: str
    steps: Sequence[Sequence[LayerStep]]
    sequences: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)
    positions: Positions | None = None

    def __post_init__(self) -> None:
        if not self.steps or not all(self.steps) or len({len(step) for step in self.steps}) != 1:
            raise SettingError("a trace has at least one step, and every step the same layers, at least one")
        if any(work.tokens < 1 for step in self.steps for work in step):
            raise SettingError("every layer of a trace has at least one token")

    @property
    def layers(self) -> int:
        """Layers of every step."""
        return len(self.steps[0])

    @property
    def tokens(self) -> int:
        """Tokens cached per sequence when the first step began."""
        return self.steps[0][0].tokens // self.sequences

    def scaled(
        self, shape: Shape, *, sequences: int | None = None, tokens: int | None = None, steps: int | None = None
    ) -> Trace:
        """What the run would have been for another model, batch, context or number of steps.

        The rule: shares stay. A layer does as the recorded layer at the same relative depth; of every count there is
        as much per cached token as was recorded. Rows that are written are as many per layer, sequence and step as were
        recorded, whatever the context. Steps beyond the recorded ones begin again with the first; each caches a token
        more.
        """
        batch = sequences or self.sequences
        first, count = tokens or self.tokens, steps or len(self.steps)
        if batch < 1 or first < 1 or count < 1:
            raise SettingError("a trace is scaled to at least one sequence, one token and one step")
        scaled = []
        for number in range(count):
            recorded = self.steps[number % len(self.steps)]
            cached = (first + number) * batch
            layers = [recorded[layer * self.layers // shape.layers] for layer in range(shape.layers)]
            scaled.append(
                [
                    replace(
                        each.times(cached / each.tokens),
                        tokens=cached,
                        written_rows=_written(each, batch, self.sequences),
                    )
                    for each in layers
                ]
            )
        settings = {**self.settings, "scaled from": f"{self.model}, {self.tokens} tokens x {self.sequences}"}
        return Trace(shape.name, self.policy, scaled, batch, settings)


def _written(step: LayerStep, batch: int, recorded: int) -> int:
    return step.written_rows * batch // recorded
