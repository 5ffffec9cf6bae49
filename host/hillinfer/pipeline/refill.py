"""Rows for satellites whose pivot has drifted: ordered in one step, installed in the next.

Reading starts at once, behind the work of the other layers, as long as what is in flight stays within its share of the
DRAM budget; what would exceed that is read when it is installed. When it is installed does not depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from hillinfer.config import Budget
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.kept_heads import KeptHeads
from hillinfer.store.ledger import Ledger
from hillinfer.store.token_stream import Fetch, TokenStream

_IN_FLIGHT = 4  # a quarter of the DRAM budget


@dataclass
class Refill:
    """wanted   which prompt positions each satellite gets, ascending, by KV head
    union    all of them, ascending; ``fetch`` brings their rows, if reading has begun
    """

    wanted: dict[int, Positions]
    union: Positions
    fetch: Fetch | None = None


class Refiller:
    """Orders and installs the refills of all streams of an engine; one at a time for each stream.

    hot   the DRAM budget
    """

    def __init__(self, geometry: Geometry, ledger: Ledger, hot: Budget, sequences: int) -> None:
        self._geometry, self._ledger, self._hot, self._sequences = geometry, ledger, hot, sequences
        self._in_flight = 0

    def order(self, stream: TokenStream, wanted: dict[int, Positions]) -> Refill:
        """Ask for rows of ``wanted``; ``install`` follows in the stream's next step, or ``abandon``."""
        refill = Refill(wanted, np.unique(np.concatenate(list(wanted.values()))))
        self._ledger.event("refills", len(wanted))
        allowed = self._hot.resolve(self._geometry.kv_bytes(stream.length, self._sequences)) // _IN_FLIGHT
        if self._in_flight + self._nbytes(refill) <= allowed:
            self._begin(stream, refill)
        return refill

    def install(self, stream: TokenStream, kept: KeptHeads, refill: Refill) -> None:
        """Put the rows in place, which have come or are waited for; let the tiers learn what was read."""
        fetch = refill.fetch or self._begin(stream, refill)
        keys, values = self._geometry.unpack_rows(fetch.wait())
        for head, chosen in refill.wanted.items():
            index = torch.from_numpy(np.searchsorted(refill.union, chosen))
            kept.replace(head, chosen, torch.stack([keys[head][index], values[head][index]], 1))
        self._end(refill)
        fetch.located.count(self._ledger, self._geometry)
        stream.settle(refill.union, fetch.located)

    def abandon(self, refill: Refill) -> None:
        """Forget an order; memory that is being read into stays until that is over."""
        if refill.fetch is not None:
            refill.fetch.wait()
            self._end(refill)

    def _nbytes(self, refill: Refill) -> int:
        return len(refill.union) * self._geometry.row_bytes

    def _begin(self, stream: TokenStream, refill: Refill) -> Fetch:
        refill.fetch = stream.fetch(refill.union)
        self._in_flight += self._nbytes(refill)
        self._ledger.change(hot=self._nbytes(refill))
        return refill.fetch

    def _end(self, refill: Refill) -> None:
        self._in_flight -= self._nbytes(refill)
        self._ledger.change(hot=-self._nbytes(refill))
