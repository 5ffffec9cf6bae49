"""Quest: attend to the pages of keys whose bounds promise the largest logits, page by page and head by head.

Source: Quest (arXiv 2406.10774). Of every page of 16 tokens the largest and smallest value of each key channel is
kept, which bounds the logit of any of its keys: Σ_d max(q·max, q·min). At each step the pages with the highest bounds
are attended, the last one always; the first two layers are attended whole.

Departures: under grouped-query attention a KV head's page ranks by the highest bound of its group's queries (the paper
has one query per KV head); page bounds of a page that is still filling are kept up to date, so that a page counts from
its first token on. Layers are counted among those with full attention.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from hillinfer.kv.bounds import ChunkBounds, signed
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.ranking import best, spread
from hillinfer.kv.selection import Positions
from hillinfer.policies.base import Budgeted
from hillinfer.policies.indexing import Everything, Index, IndexingPolicy, check_chunk, check_layers


@dataclass(frozen=True)
class Quest(Budgeted, IndexingPolicy):
    """page           tokens per page
    dense_layers   so many first layers are attended whole
    """

    name: ClassVar[str] = "quest"
    source: ClassVar[str] = "Quest, arXiv 2406.10774"
    keeps: ClassVar[str] = "everything in the tiers; each page's bounds (two keys per page) on the device"

    page: int = 16
    dense_layers: int = 2

    def __post_init__(self) -> None:
        check_chunk("page", self.page)
        check_layers("dense_layers", self.dense_layers)
        super().__post_init__()

    @property
    def minimum(self) -> int:
        return 2 * self.page

    @property
    def why_minimum(self) -> str:
        return f"the last page of {self.page} tokens and one more"

    def whole_layers(self, layers: int) -> frozenset[int]:
        return frozenset(range(min(self.dense_layers, layers)))

    def open(self, geometry: Geometry, device: torch.device) -> list[Index]:
        return [
            Everything() if layer < self.dense_layers else _Pages(self, geometry, device)
            for layer in range(geometry.layers)
        ]


class _Pages(Index):
    def __init__(self, policy: Quest, geometry: Geometry, device: torch.device) -> None:
        self._policy = policy
        self._bounds = ChunkBounds(geometry.kv_heads, geometry.head_dim, policy.page, geometry.dtype, device)

    def extend(self, keys: torch.Tensor, query: torch.Tensor) -> None:
        self._bounds.extend(keys)

    def select(self, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        tokens, page = self._bounds.tokens, self._policy.page
        allowed = self._policy.attended(tokens)
        extremes = self._bounds.extremes
        if allowed >= tokens or allowed // page >= extremes.shape[1]:
            return None
        signs = signed(query if scaling >= 0 else -query)
        bounds = torch.matmul(signs, extremes.float().transpose(1, 2)).amax(1).cpu().numpy()
        bounds[:, -1] = np.inf
        return spread(best(bounds, max(1, allowed // page)), page, tokens)

    @property
    def nbytes(self) -> int:
        return self._bounds.nbytes
