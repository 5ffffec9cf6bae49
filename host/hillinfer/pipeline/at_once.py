"""A decode step in one native call: score, select, and attend to what is in memory.

Where a policy attends to the highest scores for one query, and every scoring key of the stream is in this process's
memory, nothing in between needs Python. What comes out is the same to the last bit (tests/pipeline/test_at_once.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import ClassVar

import torch

from hillinfer import _native
from hillinfer.csd.contract import ReadTicket
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.chosen import Chosen, trace_read
from hillinfer.pipeline.trace import Trace
from hillinfer.store.token_stream import Selection, TokenStream


class ChosenAtOnce(Chosen):
    """The step is done as soon as this is made, but for rows of the cold pool, which are on their way.

    tiers      where keys and rows of the stream are: the step's own row is written there, behind the newest
    query      float32 [H, G, d]; keys, values: [H, 1, d] of the step's own token; all contiguous
    count      how many tokens are attended
    handicap   what scores of tokens lose that are in the cold pool
    scored_at  when the scores were there, in seconds of time.perf_counter
    """

    has_row: ClassVar[bool] = True

    def __init__(
        self,
        stream: TokenStream,
        tiers: _native.Tiers,
        asked: _native.Query,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
        count: int,
        handicap: int,
        threads: _native.ThreadPool | None,
        trace: Trace,
    ) -> None:
        newest = len(stream.device_tier)
        self.length = stream.device_tier.first + newest
        self._tiers, self._threads = tiers, threads  # stay until the step is over
        start = time.perf_counter()
        self._step = step = tiers.step(
            query.data_ptr(), keys.data_ptr(), values.data_ptr(), scaling, asked, newest, count, handicap, threads
        )
        seconds = step.seconds
        self.scored_at = seconds[0]
        if trace.enabled:
            for name, first, last in zip(("evaluate", "select", "attend"), (start, *seconds), seconds, strict=False):
                trace.record_here(name, first, last)
        self.hot_rows, self.cold_rows = step.hot_rows, step.cold_rows
        self._coming = None
        if self.cold_rows:
            self._coming = stream.bring(step.cold)
            with trace.span("attend"):
                step.attend()

    @property
    def reading(self) -> ReadTicket | None:
        return None if self._coming is None else self._coming.located.ticket

    def by_head(self) -> list[Positions]:
        return [self._step.positions]

    def attend(
        self,
        stream: TokenStream,
        query: torch.Tensor,
        own: torch.Tensor | None,
        scaling: float,
        trace: Trace,
        meanwhile: Callable[[], None],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if self._coming is None:
            out, lse = self._step.finish(None)
        else:
            meanwhile()
            with trace.span("wait for cold rows"):
                rows = self._coming.wait()
            if trace.enabled:
                trace_read(trace, self._coming.located, time.perf_counter())
            with trace.span("attend cold"):
                out, lse = self._step.finish(rows.view(torch.uint8).numpy())
        return torch.from_numpy(out).to(query.dtype), torch.from_numpy(lse)

    def store(self, stream: TokenStream, own: torch.Tensor | None, in_dram: torch.Tensor | None) -> None:
        stream.took(self._tiers)

    def settle(self, stream: TokenStream) -> None:
        step = self._step
        if self._coming is None and not stream.hot_pool.guests:
            stream.settle_hot(step)
            return
        positions = step.positions  # a copy each time
        lent = self._coming is not None
        cold_rows = stream.no_rows if self._coming is None else self._coming.rows
        newest = positions[:0]  # which placement does not ask for
        located = Selection(step.hot, newest, step.cold, cold_rows, step.hot_ranks, step.cold_ranks, None, lent)
        stream.settle(positions, located)
