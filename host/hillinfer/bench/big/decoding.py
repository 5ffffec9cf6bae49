"""One method at work on a workload, without a model: attention of one token after the other, layer by layer."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.bench.big.workload import Workload
from hillinfer.bench.timing import Contender
from hillinfer.csd.contract import Device, ReadTicket, Rows, Stream
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.contract import Engine
from hillinfer.policies.indexing import IndexingPolicy

Read = tuple[Stream, npt.NDArray[np.int64]]
"""Rows read from the cold pool in one go: the stream and their positions."""


class ReadLog:
    """Notes what an engine reads from its cold pool, for as long as this context is open."""

    def __init__(self, device: Device) -> None:
        self._device: Any = device
        self.reads: list[Read] = []

    def __enter__(self) -> ReadLog:
        read = self._device.read

        def noting(stream: Stream, positions: npt.NDArray[np.int64], out: Rows) -> ReadTicket:
            self.reads.append((stream, positions))
            ticket: ReadTicket = read(stream, positions, out)
            return ticket

        self._device.read = noting
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        del self._device.read


class KvDecoding(Contender):
    """A cache that was filled with the workload's prompts, and decodes its steps.

    foretells   the next layer is told its query while one computes: its true one, which is more than a method that
                predicts can have
    overlaps    one sequence's rows come while the next one is scored
    """

    def __init__(
        self, label: str, engine: Engine, workload: Workload, *, block: int | None = None, overlaps: bool = True
    ) -> None:
        assert engine.csd is not None, "a cache larger than memory has a cold pool"
        self.label, self.engine, self.device, self.block = label, engine, engine.csd, block
        self._workload, self._next, self._overlaps = workload, 0, overlaps
        policy = engine.policy
        self.foretells = isinstance(policy, IndexingPolicy) and policy.predicts
        self.reads: list[list[Read]] = []
        """What each step read from the cold pool, in this order."""
        self.captured: list[float] = []
        """Share of the attention that each step of each stream attends to."""
        self.attended_rows: list[int] = []
        """Cached rows that each step of each stream attends to, by any head."""
        self._attended: list[tuple[Stream, int, list[Positions]]] = []
        engine.witness = lambda layer, sequence, sets: self._attended.append(
            (Stream(layer, sequence), self._next, sets)
        )

    def prepare(self) -> None:
        """What the last block attended to is looked at, which takes its time."""
        for stream, number, sets in self._attended:
            cached = self._workload.context + number
            self.captured.append(self._workload.steps[stream].captured(number, cached, sets))
            self.attended_rows.append(len(sets[0]) if len(sets) == 1 else len(np.unique(np.concatenate(sets))))
        self._attended.clear()

    def step(self) -> None:
        """Raises IndexError when the workload has no more steps."""
        with ReadLog(self.device) as log:
            for layer in range(self._workload.layers):
                steps = self._batch(layer)
                for batch in [steps] if self._overlaps else ([each] for each in steps):
                    for _ in self.engine.decode_batch(layer, batch, self._workload.scaling):
                        pass
        self.reads.append(log.reads)
        self._next += 1

    def _batch(self, layer: int) -> Iterator[tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]]:
        """The step's token of each sequence; who predicts is told of the stream behind it first."""
        workload, number = self._workload, self._next
        for sequence in range(workload.sequences):
            if self.foretells:
                self._foretell(layer * workload.sequences + sequence + 1, number)
            steps = workload.steps[Stream(layer, sequence)]
            yield sequence, steps.query[number], steps.keys[number], steps.values[number]

    def _foretell(self, at: int, number: int) -> None:
        streams = self._workload.streams
        number, at = number + at // len(streams), at % len(streams)
        if number < self._workload.step_count:
            query = self._workload.steps[streams[at]].query[number]
            self.engine.foretell(*streams[at], query, self._workload.scaling)

    @property
    def mean_captured(self) -> float:
        """Of all steps so far."""
        self.prepare()
        return statistics.mean(self.captured)

    def rows_read(self, first: int) -> int:
        """From the cold pool, by all steps from ``first`` on."""
        return sum(len(positions) for reads in self.reads[first:] for _, positions in reads)

    def rows_attended(self, first: int) -> int:
        """Of the cache, by all steps from ``first`` on."""
        self.prepare()
        return sum(self.attended_rows[first * len(self._workload.streams) :])


class Reading(Contender):
    """The rows that another contender's steps read, read again with nothing else: the bound that the drive sets."""

    def __init__(self, decoding: KvDecoding, row_bytes: int) -> None:
        self.label = f"reads alone of {decoding.label}"
        self._device = decoding.device
        self._steps = decoding.reads[1:]  # the first one fills the pool
        rows = max((len(positions) for reads in self._steps for _, positions in reads), default=0)
        self._outs = [torch.zeros(rows, row_bytes, dtype=torch.uint8).numpy() for _ in range(2)]
        self._next = 0

    def step(self) -> None:
        """As a decode step may: a layer's next sequence is asked for while the last one's rows come."""
        coming: tuple[int, ReadTicket] | None = None
        for number, (stream, positions) in enumerate(self._steps[self._next % len(self._steps)]):
            if coming is not None and coming[0] != stream.layer:
                coming[1].wait()
                coming = None
            ticket = self._device.read(stream, positions, self._outs[number % 2][: len(positions)])
            if coming is not None:
                coming[1].wait()
            coming = stream.layer, ticket
        if coming is not None:
            coming[1].wait()
        self._next += 1
