"""H2O with offload: heavy hitters and recent tokens, found as H2O does, of a cache that is kept whole in the tiers.

H2O itself (``policies/h2o.py``) drops the others, and has all it keeps in memory: no more than memory holds. Here the
budget may be larger than that, and what memory has no room for is read at every step. Departures: one set serves all
heads, whose masses are summed, so that a token is one read; the mass of the prompt is that of every ``stride``-th
query; masses are not added to while decoding, only recent tokens move on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from hillinfer.kv.geometry import Geometry
from hillinfer.kv.selection import Positions
from hillinfer.policies.base import Budgeted
from hillinfer.policies.indexing import Index, IndexingPolicy


@dataclass(frozen=True)
class H2OOffload(Budgeted, IndexingPolicy):
    """recent    share of the budget for the most recent tokens; the rest is for the heavy hitters
    queries   so many of the prompt's queries, evenly spread, stand for all of them
    """

    name: ClassVar[str] = "h2o-offload"
    source: ClassVar[str] = "H2O, arXiv 2306.14048, kept whole"
    keeps: ClassVar[str] = "everything in the tiers; a mass per token on the device"

    recent: float = 0.5
    queries: int = 128

    def open(self, geometry: Geometry, device: torch.device) -> list[Index]:
        return [_Masses(self, geometry) for _ in range(geometry.layers)]


class _Masses(Index):
    def __init__(self, policy: H2OOffload, geometry: Geometry) -> None:
        self._policy, self._scaling = policy, geometry.head_dim**-0.5
        self._queries: list[torch.Tensor] = []
        self._tokens = 0
        self._ranked: Positions | None = None  # of the prompt, the heaviest first

    def extend(self, keys: torch.Tensor, query: torch.Tensor) -> None:
        self._tokens += keys.shape[1]
        if self._ranked is None:
            self._queries.append(query)

    @property
    def unsettled(self) -> bool:
        return self._ranked is None and self._tokens > 0

    def settle(self, keys: Iterator[torch.Tensor]) -> None:
        every = torch.cat(self._queries, 2)
        self._queries.clear()
        prompt = every.shape[2]
        places = torch.from_numpy(np.linspace(0, prompt - 1, min(self._policy.queries, prompt)).astype(np.int64))
        sample = every[:, :, places].float() * self._scaling  # [H, G, s, d]
        logits = torch.cat([torch.matmul(sample, part.float()[:, None].transpose(-1, -2)) for part in keys], -1)
        logits.masked_fill_(torch.arange(logits.shape[-1]) > places[:, None], -torch.inf)
        mass = logits.softmax(-1).sum((0, 1, 2)).numpy()
        self._ranked = np.argsort(-mass[:prompt], kind="stable")

    def select(self, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        budget = self._policy.attended(self._tokens)
        if self._ranked is None or budget >= self._tokens:
            return None
        recent = self._tokens - int(self._policy.recent * budget)
        heavy = self._ranked[self._ranked < recent][: budget - (self._tokens - recent)]
        return [np.sort(np.concatenate([heavy, np.arange(recent, self._tokens)]))]

    @property
    def nbytes(self) -> int:
        return 0 if self._ranked is None else self._ranked.nbytes
