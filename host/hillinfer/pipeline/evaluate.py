"""Hierarchical importance evaluation (paper §HIE): host and storage device score at the same time.

Every cached token is scored exactly once, by the side that owns its tile: the host the newest tiles of the hot pool
and the device tier, the storage device all others.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hillinfer.csd.contract import Device
from hillinfer.kv.geometry import BLOCK, TILE
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.scoring import Scorer
from hillinfer.kv.selection import Scores
from hillinfer.pipeline.trace import Trace
from hillinfer.store.ledger import Ledger
from hillinfer.store.token_stream import TokenStream


class Evaluator:
    """Scores a stream's tokens against a query, on both sides.

    meanwhile   called when the host has done its share and would only wait for the device
    """

    def __init__(
        self, csd: Device, scorer: Scorer, ledger: Ledger, trace: Trace, meanwhile: Callable[[], None]
    ) -> None:
        self._csd, self._scorer, self._ledger, self._trace = csd, scorer, ledger, trace
        self._meanwhile = meanwhile

    def score(self, stream: TokenStream, queries: list[QuantisedQuery]) -> list[Scores]:
        """Scores int16 [length] for each query. The device works on all of them while the host does its share."""
        runs = stream.device_runs()
        tickets = [self._csd.submit(stream.id, query, runs) if runs else None for query in queries]
        tiles = -(-stream.length // TILE)
        results = [np.empty(tiles * TILE, np.int16) for _ in queries]
        with self._trace.span("host score"):
            hosted = [self._host(stream, query, out) for query, out in zip(queries, results, strict=True)]
        self._meanwhile()
        for ticket, out, scored in zip(tickets, results, hosted, strict=True):
            remote = 0
            with self._trace.span("merge blocks"):
                for block in ticket or ():
                    out[block.positions] = block.scores
                    remote += block.scanned
            assert scored + remote == stream.length, "a token was scored twice, or not at all"
            self._ledger.scored(host=scored, device=remote)
        return [out[: stream.length] for out in results]

    def _host(self, stream: TokenStream, query: QuantisedQuery, out: Scores) -> int:
        """Score what the host owns into ``out``; returns how many tokens that was."""
        scored = 0
        for tiles, keys in stream.host_tiles.chunks(BLOCK // TILE):
            scores = self._scorer.score(keys.integers, keys.exponents, query)
            out.reshape(-1, TILE)[tiles] = scores.reshape(-1, TILE)
            scored += len(scores)
        newest = stream.device_tier.keys
        for start in range(0, len(newest.integers), BLOCK):
            part = slice(start, start + BLOCK)
            exponents = newest.exponents[start // TILE : (start + BLOCK) // TILE]
            scores = self._scorer.score(newest.integers[part], exponents, query)
            out[stream.stored + start : stream.stored + start + len(scores)] = scores
            scored += len(scores)
        return scored
