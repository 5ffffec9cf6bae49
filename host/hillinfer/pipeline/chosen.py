"""What one step of one stream attends to, and its attention."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.csd.contract import ReadTicket
from hillinfer.kv.row_attention import attend_rows
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.trace import Trace
from hillinfer.store.token_stream import Selection, TokenStream

_MOMENT = 20e-6
"""Seconds that asking for what is there takes at most."""


class Spent(NamedTuple):
    """Seconds: attending what was in memory; from when cold rows were asked for until they were there; attending them.

    waited   whether anybody waited for the cold rows; if not, they were there earlier than that
    near     rows that were in memory
    asked    when cold rows were asked for, seconds of time.perf_counter
    """

    attending: float = 0.0
    reading: float = 0.0
    attending_cold: float = 0.0
    waited: bool = False
    near: int = 0
    asked: float = 0.0


class Chosen(ABC):
    """Tokens chosen and found, those in the cold pool on their way.

    spent            what the attention took, afterwards, where it is measured
    length           tokens of the stream when they were chosen
    hot_rows, cold_rows   how many of them are in the hot pool, and in the cold pool only
    has_row          the row of the step's own token is where it belongs already
    """

    has_row: ClassVar[bool] = False
    length: int
    hot_rows: int
    cold_rows: int
    spent: Spent = Spent()

    @abstractmethod
    def by_head(self) -> list[Positions]:
        """Ascending positions: one set for all heads, or one per KV head."""

    @property
    @abstractmethod
    def reading(self) -> ReadTicket | None:
        """What brings the cold rows, until they are attended; None: there are none."""

    @abstractmethod
    def attend(
        self,
        stream: TokenStream,
        query: torch.Tensor,
        own: torch.Tensor | None,
        scaling: float,
        trace: Trace,
        meanwhile: Callable[[], None],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attention of a query [H, G, 1, d] to what each head selected and to its own row [1, row_stride].

        own         the row; None: ``has_row``
        meanwhile   called when only cold rows are waited for

        Returns the output [H, G, 1, d] and the log-sum-exp float32 [H, G], on the query's device.
        """

    def store(self, stream: TokenStream, own: torch.Tensor | None, in_dram: torch.Tensor | None) -> None:
        """Add the step's own token to the stream; ``in_dram``: its row in DRAM, where it was brought there."""
        assert own is not None, "a row that has no place yet"
        stream.append(own, in_dram)

    @abstractmethod
    def settle(self, stream: TokenStream) -> None:
        """Tell the stream what was attended, behind the step."""


@dataclass
class ChosenSets(Chosen):
    """Sets of any kind, one for all heads or one for each.

    ``rows`` is the union of the ``sets``, ``located`` where they are.
    """

    length: int
    sets: list[Positions]
    rows: Positions
    located: Selection

    def __post_init__(self) -> None:
        self.hot_rows, self.cold_rows = len(self.located.hot), len(self.located.cold)

    def by_head(self) -> list[Positions]:
        return self.sets

    @property
    def reading(self) -> ReadTicket | None:
        return self.located.ticket

    def settle(self, stream: TokenStream) -> None:
        stream.settle(self.rows, self.located)

    @classmethod
    def of(cls, stream: TokenStream, sets: list[Positions]) -> ChosenSets:
        """The sets' rows, found; those in the cold pool only start to be read."""
        rows = sets[0] if len(sets) == 1 else np.flatnonzero(_members(sets, stream.length).any(0))
        return cls(stream.length, sets, rows, stream.locate(rows))

    def attend(
        self,
        stream: TokenStream,
        query: torch.Tensor,
        own: torch.Tensor | None,
        scaling: float,
        trace: Trace,
        meanwhile: Callable[[], None],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        assert own is not None, "a row that has no place yet"
        located, count = self.located, len(self.rows)
        stored = len(located.hot) + len(located.cold)
        newest_ranks, cold = np.arange(stored, count), np.arange(len(located.cold))
        attention = attend_rows(stream.geometry, query, scaling, count + 1)
        members = _members(self.sets, stream.length)[:, self.rows] if len(self.sets) > 1 else None

        def add(rows: torch.Tensor, index: Positions, ranks: Positions) -> None:
            if members is None:
                attention.add(rows, index, ranks)
                return
            for head, member in enumerate(members):
                mine = member[ranks]
                attention.add(rows, index[mine], ranks[mine], head)

        start = time.perf_counter()
        with trace.span("attend"):
            attention.add(own, np.zeros(1, np.int64), np.array([count]))
            add(stream.hot_pool.rows, located.hot, located.hot_ranks)
            add(stream.device_tier.rows, located.newest, newest_ranks)
        attended = time.perf_counter()
        meanwhile()
        waiting = time.perf_counter()
        with trace.span("wait for cold rows"):
            cold_rows = located.wait()
        arrived = time.perf_counter()
        if len(cold):
            trace_read(trace, located, arrived)
        with trace.span("attend cold"):
            add(cold_rows, cold, located.cold_ranks)
            result = attention.finish()
        reading, rest = arrived - located.started, time.perf_counter() - arrived
        self.spent = Spent(
            attended - start, reading, rest, arrived - waiting > _MOMENT, count - len(cold), located.started
        )
        return result


def trace_read(trace: Trace, located: Selection, arrived: float) -> None:
    """Note a read of cold rows, and what of it was read ahead: neighbouring layers do that at the same time."""
    trace.record("read", "cold reads", located.started, arrived)
    if located.ahead is not None:
        trace.record("read ahead", "reads ahead", located.ahead, arrived)


def _members(sets: list[Positions], tokens: int) -> npt.NDArray[np.bool_]:
    """Which of ``tokens`` tokens are in each set, bool [sets, tokens]."""
    members = np.zeros((len(sets), tokens), bool)
    for member, positions in zip(members, sets, strict=True):
        member[positions] = True
    return members
