"""InfiniGen: the next layer's important tokens are foretold, and read while this layer computes.

Source: InfiniGen (OSDI 2024, arXiv 2406.19707), called "prefetch-based" in comparisons. The input of a layer's
attention is much like the next layer's, so the next layer's query weights, applied to it, foretell that layer's query.
It is held against a few channels of the cached keys: both are rotated by the principal axes of the queries (skewing),
which gathers their products in few channels, and the fifth of them with the largest Σ|q̃| is kept. Keys whose logit is
above the largest less 4 are counted; as many as the mean over heads, at most the budget, are attended per head. The
first two layers are attended whole.

Departures: skewing and channels come from the last ``skew_tokens`` queries of the prompt, not from another text, so
that nothing is calibrated beforehand; they are applied after RoPE, and stay for the context's life. Under
grouped-query attention the axes are those of a group's queries together, and a key ranks by the least distance to the
largest logit of any of them. A layer whose query is not foretold (the first one with an index) is looked up by its
own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.growing import GrowingTensor
from hillinfer.kv.ranking import best
from hillinfer.kv.selection import Positions
from hillinfer.policies.base import Budgeted
from hillinfer.policies.indexing import Everything, Index, IndexingPolicy, check_layers


@dataclass(frozen=True)
class InfiniGen(Budgeted, IndexingPolicy):
    """channels       share of the channels that foretold queries are held against
    margin         keys with a logit above the largest less this are counted, in nats
    dense_layers   so many first layers are attended whole
    skew_tokens    queries of so many last tokens of the prompt give the axes and the channels
    """

    name: ClassVar[str] = "infinigen"
    source: ClassVar[str] = "InfiniGen, OSDI 2024, arXiv 2406.19707"
    keeps: ClassVar[str] = "everything in the tiers; a fifth of each key's channels, rotated, on the device"
    predicts: ClassVar[bool] = True

    channels: float = 0.2
    margin: float = 4.0
    dense_layers: int = 2
    skew_tokens: int = 64

    def __post_init__(self) -> None:
        if not 0 < self.channels <= 1:
            raise SettingError(f"channels is {self.channels}: it must be above 0 and at most 1 (0.2 keeps a fifth)")
        if not self.margin >= 0:
            raise SettingError(f"margin is {self.margin}: it must not be negative")
        if self.skew_tokens < 1:
            raise SettingError(f"skew_tokens is {self.skew_tokens}: axes need at least 1 query")
        check_layers("dense_layers", self.dense_layers)
        super().__post_init__()

    def whole_layers(self, layers: int) -> frozenset[int]:
        return frozenset(range(min(self.dense_layers, layers)))

    def open(self, geometry: Geometry, device: torch.device) -> list[Index]:
        return [
            Everything() if layer < self.dense_layers else _SkewedKeys(self, geometry, device)
            for layer in range(geometry.layers)
        ]


class _SkewedKeys(Index):
    """A few channels of every key. Until the first selection only the last queries are kept, which will say which."""

    def __init__(self, policy: InfiniGen, geometry: Geometry, device: torch.device) -> None:
        self._policy = policy
        width = max(1, int(policy.channels * geometry.head_dim))
        self._keys = GrowingTensor(geometry.kv_heads, width, geometry.dtype, device)
        self._axes: torch.Tensor | None = None  # [H, d, width]
        self._queries: deque[torch.Tensor] = deque()  # [H, G, n, d] each

    def extend(self, keys: torch.Tensor, query: torch.Tensor) -> None:
        if self._axes is not None:
            self._keys.append(torch.matmul(keys.float(), self._axes))
            return
        self._queries.append(query[:, :, -self._policy.skew_tokens :].clone())
        surplus = sum(part.shape[2] for part in self._queries) - self._policy.skew_tokens
        while surplus >= self._queries[0].shape[2]:
            surplus -= self._queries.popleft().shape[2]

    @property
    def unsettled(self) -> bool:
        return self._axes is None and bool(self._queries)

    def settle(self, keys: Iterator[torch.Tensor]) -> None:
        recent = torch.cat(list(self._queries), 2)[:, :, -self._policy.skew_tokens :]
        queries = recent.float().flatten(1, 2)  # [H, G·n, d]
        moment = torch.matmul(queries.double().transpose(1, 2), queries.double())  # its axes are the queries' own
        axes = torch.linalg.eigh(moment)[1].float()
        weight = torch.matmul(queries, axes).abs().sum(1)  # [H, d]
        kept = torch.from_numpy(best(weight.cpu().numpy(), self._keys.width)).to(axes.device)
        self._axes = axes.gather(2, kept[:, None].expand(-1, axes.shape[1], -1)).contiguous()
        self._queries.clear()
        for part in keys:
            self._keys.append(torch.matmul(part.float(), self._axes))

    def select(self, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        tokens = len(self._keys)
        allowed = self._policy.attended(tokens)
        if self._axes is None or allowed >= tokens:
            return None
        skewed = torch.matmul(query * scaling, self._axes)
        logits = torch.matmul(skewed, self._keys.values.float().transpose(1, 2))  # [H, G, tokens]
        below = logits - logits.amax(-1, keepdim=True)
        counted = int((below > -self._policy.margin).sum()) // (below.shape[0] * below.shape[1])
        return list(best(below.amax(1).cpu().numpy(), max(1, min(counted, allowed))))

    @property
    def nbytes(self) -> int:
        waiting = sum(part.nbytes for part in self._queries)
        return self._keys.nbytes + waiting + (0 if self._axes is None else self._axes.nbytes)
