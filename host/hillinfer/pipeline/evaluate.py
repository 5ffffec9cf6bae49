"""Hierarchical importance evaluation (paper §HIE): host and storage device score at the same time.

Every cached token is scored exactly once, by the side that owns its tile: the host the newest tiles of the hot pool
and the device tier, the storage device all others.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from hillinfer.csd.contract import Device
from hillinfer.errors import DeviceError
from hillinfer.kv.geometry import TILE
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.selection import Scores
from hillinfer.pipeline.balancing import Balance
from hillinfer.pipeline.trace import Trace
from hillinfer.store.ledger import Ledger
from hillinfer.store.token_stream import TokenStream


class Evaluator:
    """Scores a stream's tokens against queries, on both sides; ``balance`` is told how long the host's share took."""

    def __init__(self, csd: Device, ledger: Ledger, trace: Trace, balance: Balance | None = None) -> None:
        self._csd, self._ledger, self._trace, self._balance = csd, ledger, trace, balance

    def score(
        self,
        stream: TokenStream,
        queries: list[QuantisedQuery],
        meanwhile: Callable[[], None],
        *,
        count: bool = True,
    ) -> list[Scores]:
        """Scores int16 [length] for each query. The device works on all of them while the host does its share.

        meanwhile   called when the host has done its share and would only wait for the device
        count       whether the ledger counts it: what seeds the placement is no decode step
        """
        runs = stream.device_runs()
        tickets = [self._csd.submit(stream.id, query, runs) for query in queries] if runs else []
        try:
            tiles = -(-stream.length // TILE)
            results = [np.empty(tiles * TILE, np.int16) for _ in queries]
            start = time.perf_counter()
            with self._trace.span("host score"):
                hosted = [self._host(stream, query, out) for query, out in zip(queries, results, strict=True)]
            scored_in = time.perf_counter() - start
            meanwhile()
            start = time.perf_counter()
            for ticket, out in zip(tickets, results, strict=False):
                with self._trace.span("merge blocks"):
                    ticket.merge_into(out)
        except BaseException:
            for ticket in tickets:
                ticket.cancel()
            raise
        remote = sum(run.tokens for run in runs)
        if self._balance is not None and count:
            helping = time.perf_counter() - start if any(ticket.shared for ticket in tickets) else 0.0
            self._balance.scored(sum(hosted), scored_in, helping=helping, of=remote * len(tickets))
        if any(scored + remote != stream.length for scored in hosted):
            raise DeviceError(f"{stream.id}: host and device own {hosted[0] + remote} of {stream.length} tokens")
        if count:
            for scored in hosted:
                self._ledger.scored(host=scored, device=remote)
        return [out[: stream.length] for out in results]

    def scored_at_once(self, stream: TokenStream, seconds: float) -> None:
        """All tokens were scored by this thread, also those that are the storage device's, whose keys lie here."""
        tokens, runs = stream.scored_by_device
        self._ledger.scored(host=stream.length - tokens, device=tokens)
        if tokens:
            self._csd.scanned(stream.id, tokens, runs, seconds * tokens / stream.length)

    def _host(self, stream: TokenStream, query: QuantisedQuery, out: Scores) -> int:
        """Score what the host owns into ``out``; returns how many tokens that was."""
        tiles = 0
        for first, keys, exponents in [*stream.host_tiles.runs(), stream.newest_tiles]:
            query.native.score(keys, exponents, out[first * TILE :])
            tiles += len(keys)
        return tiles * TILE - (-stream.length % TILE)  # the last tile may be begun only
