"""LeoAM-like: chunks ranked by bounds, those that may matter halved again and again.

Source: LeoAM (arXiv 2506.20187), its importance-aware chunks and KV abstracts. Of every chunk the largest and smallest
value of each key channel is kept (its abstract), from which follow bounds on its keys' logits: U = Σ max(q·min, q·max)
and Λ = Σ min(q·min, q·max). Where the chunks with the highest Λ hold the budget, a chunk with U below theirs cannot
matter: it is dropped, the others are halved, and so on ``rounds`` times. What is left is taken by U until it holds the
budget, the newest chunk always. Where attention is less skewed, in the first layers, chunks are small, none is halved,
and the budget is large.

Departures: "-like", because the paper leaves the aggregation over heads and the halving rule open. Bounds are summed
over all query heads, so that one set serves them and a chunk is one contiguous read; what to halve is decided as above.
The last chunk taken counts whole, so that up to a chunk more than the budget may be attended. The paper's compression
of transfers and its pipeline have no part in which tokens are attended, and are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.errors import SettingError
from hillinfer.kv.bounds import ChunkBounds, signed, swapped
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.growing import rows_allocated
from hillinfer.kv.ranking import spread
from hillinfer.kv.selection import Positions
from hillinfer.policies.base import Budgeted
from hillinfer.policies.indexing import Index, IndexingPolicy, check_chunk, check_layers


@dataclass(frozen=True)
class LeoAM(Budgeted, IndexingPolicy):
    """chunk          tokens per chunk before any is halved
    rounds         how often chunks are halved
    first_layers   so many first layers have chunks and a budget of their own, and halve nothing
    first_chunk    tokens per chunk there
    first_ratio    share of the cached tokens attended there, if that is more than the budget
    """

    name: ClassVar[str] = "leoam"
    source: ClassVar[str] = "LeoAM, arXiv 2506.20187 (chunks and abstracts)"
    keeps: ClassVar[str] = "everything in the tiers; the bounds of chunks of every size in DRAM"
    in_dram: ClassVar[bool] = True

    chunk: int = 128
    rounds: int = 3
    first_layers: int = 2
    first_chunk: int = 8
    first_ratio: float = 0.5

    def __post_init__(self) -> None:
        check_chunk("chunk", self.chunk)
        check_chunk("first_chunk", self.first_chunk)
        check_layers("first_layers", self.first_layers)
        if self.rounds < 0 or self.chunk % 2**self.rounds:
            raise SettingError(
                f"chunks of {self.chunk} tokens cannot be halved {self.rounds} times: give a multiple of 2^rounds"
            )
        if not 0 < self.first_ratio <= 1:
            raise SettingError(f"first_ratio is {self.first_ratio}: it must be above 0 and at most 1")
        super().__post_init__()

    @property
    def minimum(self) -> int:
        return self.chunk >> self.rounds

    @property
    def why_minimum(self) -> str:
        return "a chunk of the smallest size"

    def dram_bytes(self, geometry: Geometry, tokens: int) -> int:
        extremes = 2 * geometry.kv_heads * geometry.head_dim * geometry.dtype.itemsize
        sizes = [self.chunk >> halved for halved in range(self.rounds + 1)]
        first = [self.first_chunk] if self.first_layers else [self.chunk]
        return extremes * max(sum(rows_allocated(-(-tokens // size)) for size in each) for each in (sizes, first))

    def open(self, geometry: Geometry, device: torch.device) -> list[Index]:
        return [_Abstracts(self, geometry, layer < self.first_layers) for layer in range(geometry.layers)]


class _Abstracts(Index):
    """Bounds of all chunk sizes, the largest first: ``_levels[r]`` is of chunks halved r times."""

    def __init__(self, policy: LeoAM, geometry: Geometry, first: bool) -> None:
        self._policy = policy
        self._chunk = policy.first_chunk if first else policy.chunk
        self._rounds = 0 if first else policy.rounds
        self._ratio = policy.first_ratio if first else 0.0
        self._levels = [
            ChunkBounds(
                geometry.kv_heads, geometry.head_dim, self._chunk >> halved, geometry.dtype, torch.device("cpu")
            )
            for halved in range(self._rounds + 1)
        ]

    def extend(self, keys: torch.Tensor, query: torch.Tensor) -> None:
        keys = keys.cpu()
        for level in self._levels:
            level.extend(keys)

    def select(self, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        tokens = self._levels[0].tokens
        wanted = max(self._policy.attended(tokens), int(self._ratio * tokens))
        if wanted >= tokens:
            return None
        query = query.cpu() if scaling >= 0 else -query.cpu()
        weights = torch.stack([signed(query).sum(1), swapped(query).sum(1)], -1)  # [H, 2·d, 2]: of U and of Λ
        place = np.arange(len(self._levels[0]))  # of a candidate among the chunks of its size
        bounds = self._bounds(0, None, weights)
        for halved in range(self._rounds):
            surely = bounds[self._enough(halved, place, bounds[:, 1], wanted), 1].min()
            place = place[(bounds[:, 0] >= surely) | (place == place[-1])]
            place = (2 * place[:, None] + np.arange(2)).ravel()
            place = place[place < len(self._levels[halved + 1])]  # the last chunk may be less than half full
            bounds = self._bounds(halved + 1, place, weights)
        bounds[-1, 0] = np.inf  # the chunk that is filling, or was just filled
        taken = np.sort(place[self._enough(self._rounds, place, bounds[:, 0], wanted)])
        return spread(taken[None], self._chunk >> self._rounds, tokens)

    def _bounds(self, halved: int, places: Positions | None, weights: torch.Tensor) -> npt.NDArray[np.float32]:
        """U and Λ, float32 [n, 2], of chunks that were halved so often: those at ``places``, or all."""
        extremes = self._levels[halved].extremes
        if places is not None:
            extremes = extremes[:, torch.from_numpy(places)]
        bounds: npt.NDArray[np.float32] = torch.matmul(extremes.float(), weights).sum(0).numpy()
        return bounds

    def _enough(
        self, halved: int, place: Positions, rank: npt.NDArray[np.float32], wanted: int
    ) -> npt.NDArray[np.intp]:
        """Which chunks rank highest, newest first among equals, until they hold ``wanted`` tokens."""
        size = self._chunk >> halved
        held = np.minimum(size, self._levels[0].tokens - place * size)
        order = np.argsort(-rank[::-1], kind="stable")
        order = len(rank) - 1 - order
        return order[: int(np.searchsorted(held[order].cumsum(), wanted)) + 1]

    @property
    def nbytes(self) -> int:
        return sum(level.nbytes for level in self._levels)
