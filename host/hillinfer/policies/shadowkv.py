"""ShadowKV: chunks of 8 tokens ranked by the mean of their keys; chunks whose mean says little are always attended.

Source: ShadowKV (arXiv 2410.21465). A chunk's landmark is the mean of its keys after RoPE. At each step the chunks with
the highest softmax over landmarks (the largest of a group's queries) are attended, per KV head, with two kinds that
always are: the newest tokens, and outliers, the chunks whose landmark stands worst for one of its keys (lowest minimum
cosine).

Departures, with their reasons:

- The paper keeps keys before RoPE as a rank-160 product on the GPU and fetches values only. Here a token's key and
  value are one row, and one read: the key comes with the value at no extra request, exact, so nothing is reconstructed
  and no factors take memory. Which tokens are attended is the paper's; that their keys are approximate is not.
- Everything counts against the budget, outliers and newest tokens too; outliers take at most a quarter of it.
- Generated tokens join the chunks like those of the prompt (the paper attends to all of them for ever).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.growing import GrowingTensor
from hillinfer.kv.ranking import best, spread
from hillinfer.kv.selection import Positions
from hillinfer.policies.base import Budgeted
from hillinfer.policies.indexing import Index, IndexingPolicy, check_chunk


@dataclass(frozen=True)
class ShadowKV(Budgeted, IndexingPolicy):
    """chunk      tokens per chunk
    recent     at least so many newest tokens are always attended, to the beginning of a chunk
    outliers   most chunks that are always attended, per KV head
    """

    name: ClassVar[str] = "shadowkv"
    source: ClassVar[str] = "ShadowKV, arXiv 2410.21465"
    keeps: ClassVar[str] = "everything in the tiers; each chunk's mean key on the device"

    chunk: int = 8
    recent: int = 32
    outliers: int = 48

    def __post_init__(self) -> None:
        check_chunk("chunk", self.chunk)
        for name in ("recent", "outliers"):
            if getattr(self, name) < 0:
                raise SettingError(f"{name} is {getattr(self, name)}: it must not be negative")
        super().__post_init__()

    @property
    def minimum(self) -> int:
        return self.recent + 2 * self.chunk

    @property
    def why_minimum(self) -> str:
        return f"{self.recent} recent tokens, rounded up to a chunk of {self.chunk}, and one more chunk"

    def open(self, geometry: Geometry, device: torch.device) -> list[Index]:
        return [_Landmarks(self, geometry, device) for _ in range(geometry.layers)]


class _Landmarks(Index):
    """Means of whole chunks; keys of the one that is filling wait for the rest of it."""

    def __init__(self, policy: ShadowKV, geometry: Geometry, device: torch.device) -> None:
        heads, dim = geometry.kv_heads, geometry.head_dim
        self._policy = policy
        self._means = GrowingTensor(heads, dim, geometry.dtype, device)
        self._cosines = GrowingTensor(heads, 1, torch.float32, torch.device("cpu"))  # the lowest of each chunk
        self._waiting = torch.empty(heads, 0, dim, dtype=geometry.dtype, device=device)

    @property
    def _tokens(self) -> int:
        return len(self._means) * self._policy.chunk + self._waiting.shape[1]

    def extend(self, keys: torch.Tensor, query: torch.Tensor) -> None:
        chunk = self._policy.chunk
        keys = torch.cat([self._waiting, keys], 1)
        whole = keys.shape[1] // chunk * chunk
        self._waiting = keys[:, whole:].clone()
        if whole:
            chunks = keys[:, :whole].reshape(len(keys), -1, chunk, keys.shape[2]).float()
            means = chunks.mean(2)
            cosines = torch.nn.functional.cosine_similarity(means[:, :, None], chunks, dim=-1)
            self._means.append(means)
            self._cosines.append(cosines.amin(-1, keepdim=True).cpu())

    def select(self, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        policy, tokens = self._policy, self._tokens
        allowed = policy.attended(tokens)
        older = max(0, tokens - policy.recent) // policy.chunk  # chunks not attended for being recent
        room = (allowed - (tokens - older * policy.chunk)) // policy.chunk
        if allowed >= tokens or room >= older:
            return None
        logits = torch.matmul(query * scaling, self._means.values[:, :older].float().transpose(1, 2))
        oddity = -self._cosines.values[:, :older, 0].numpy()
        always = best(oddity, min(policy.outliers, room // 4))
        heads = np.arange(len(always))[:, None]
        logits[torch.from_numpy(heads), :, torch.from_numpy(always)] = -torch.inf
        scores = logits.log_softmax(-1).amax(1).cpu().numpy()
        scores[heads, always] = np.inf
        recent = np.arange(older * policy.chunk, tokens)
        return [np.concatenate([chosen, recent]) for chosen in spread(best(scores, room), policy.chunk, tokens)]

    @property
    def nbytes(self) -> int:
        return self._means.nbytes + self._cosines.nbytes + self._waiting.nbytes
