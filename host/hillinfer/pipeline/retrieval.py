"""HeteroCache's retrieval: pivots are watched, and where one drifts, rows are ordered for its satellites."""

from __future__ import annotations

import torch

from hillinfer.csd.contract import Device
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.evaluate import Evaluator
from hillinfer.pipeline.kept_heads import KeptHeads
from hillinfer.pipeline.refill import Refill, Refiller
from hillinfer.pipeline.supply import by_own_query
from hillinfer.pipeline.trace import Trace
from hillinfer.policies.base import PerHead
from hillinfer.policies.heterocache import HeteroCache
from hillinfer.profiling.importance import top_mask, top_positions
from hillinfer.store.ledger import Ledger
from hillinfer.store.token_stream import TokenStream


class Retrieval:
    """Of all streams of an engine; what a stream remembers is in its ``KeptHeads``."""

    def __init__(self, policy: HeteroCache, csd: Device, refiller: Refiller, ledger: Ledger, trace: Trace) -> None:
        self._policy, self._layers, self._refiller = policy, policy.heads.layers, refiller
        self._ledger, self._trace = ledger, trace
        self._evaluator = Evaluator(csd, ledger, trace)

    def watch(
        self,
        layer: int,
        stream: TokenStream,
        kept: KeptHeads,
        query: torch.Tensor,
        normaliser: PerHead,
        scaling: float,
    ) -> Refill | None:
        """Look where the pivots look with a step's query [H, G, 1, d]; what was ordered for satellites, if any.

        normaliser   log-sum-exp float32 [H, G] that the step's attention left
        """
        wanted: dict[int, Positions] = {}
        with self._trace.span("watch"):
            for pivot, monitor in kept.monitors.items():
                scores = kept.watched(pivot, query, scaling, self._policy.kernel)
                if monitor.observe(top_mask(scores, kept.base)):
                    self._ledger.event("drifts")
                    for head in self._layers[layer].clusters[pivot]:
                        wanted[head] = top_positions(scores, len(kept.positions[head]))
        if not wanted:
            return None
        if self._policy.supply == "csd":
            counts = {head: len(positions) for head, positions in wanted.items()}
            with self._trace.span("evaluate"):
                wanted = by_own_query(self._evaluator, stream, query, normaliser, scaling, counts, kept.prompt)
        return self._refiller.order(stream, wanted)
