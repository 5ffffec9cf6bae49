"""A decode step in one native call: score, select, and attend to what is in memory.

Where a policy attends to the highest scores for one query, and every scoring key of the stream is in this process's
memory, nothing in between needs Python. What comes out is the same to the last bit (tests/pipeline/test_at_once.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from hillinfer import _native
from hillinfer.csd.contract import KeyRun, ReadTicket
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.row_attention import ELEMENTS
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.chosen import Chosen, trace_read
from hillinfer.pipeline.trace import Trace
from hillinfer.store.token_stream import Selection, TokenStream


class ChosenAtOnce(Chosen):
    """The step is done as soon as this is made, but for rows of the cold pool, which are on their way.

    keys       where all scoring keys of the stream are, in order of position
    query      float32 [H, G, d]; own: the row [1, row_stride] of the step's own token
    count      how many tokens are attended
    scored_at  when the scores were there, in seconds of time.perf_counter
    """

    def __init__(
        self,
        stream: TokenStream,
        keys: list[KeyRun],
        asked: QuantisedQuery,
        query: torch.Tensor,
        own: torch.Tensor,
        scaling: float,
        count: int,
        threads: _native.ThreadPool | None,
        trace: Trace,
    ) -> None:
        self.length = stream.length
        self._alive = keys, own, threads
        start = time.perf_counter()
        self._step = _native.Step(
            query.numpy(),
            scaling,
            asked.native,
            keys,
            self.length,
            count,
            stream.hot_pool.slot_of,
            stream.hot_pool.bytes,
            stream.device_tier.bytes,
            own.view(torch.uint8).numpy(),
            ELEMENTS[stream.geometry.dtype],
            threads,
        )
        seconds = self._step.seconds
        self.scored_at = seconds[0]
        if trace.enabled:
            for name, first, last in zip(("evaluate", "select", "attend"), (start, *seconds), seconds, strict=False):
                trace.record_here(name, first, last)
        self.hot_rows, self.cold_rows = self._step.hot_rows, self._step.cold_rows
        self._coming = None
        if self.cold_rows:
            self._coming = stream.bring(self._step.cold)
            with trace.span("attend"):
                self._step.attend()

    def by_head(self) -> list[Positions]:
        return [self._step.positions]

    @property
    def reading(self) -> ReadTicket | None:
        return None if self._coming is None else self._coming.located.ticket

    def attend(
        self,
        stream: TokenStream,
        query: torch.Tensor,
        own: torch.Tensor,
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
                trace_read(trace, stream, self._coming.located, time.perf_counter())
            with trace.span("attend cold"):
                out, lse = self._step.finish(rows.view(torch.uint8).numpy())
        return torch.from_numpy(out)[:, :, None].to(query.dtype), torch.from_numpy(lse)

    def settle(self, stream: TokenStream) -> None:
        step = self._step
        positions = step.positions  # a copy each time
        if self._coming is None and not stream.hot_pool.guests:
            stream.settle_hot(positions)
            return
        cold_rows = stream.no_rows if self._coming is None else self._coming.rows
        newest = positions[:0]  # which placement does not ask for
        located = Selection(step.hot, newest, step.cold, cold_rows, step.hot_ranks, step.cold_ranks, None)
        stream.settle(positions, located)
