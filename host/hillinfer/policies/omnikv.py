"""OmniKV: a few filter layers find the important tokens, and the layers behind each of them reuse its set.

Source: OmniKV (ICLR 2025). Important tokens are much the same in neighbouring layers. A filter layer attends to
everything; the raw logits of the step's query, the largest over all heads, rank the tokens, and the best of them are
what the following layers attend to, until the next filter layer. Layers before the first filter are attended whole.

Departures: a filter layer's keys are kept twice, in the index they are ranked by and in the tiers that it attends from;
the paper leaves that layer's cache on the GPU. Default filter layers lie at 1/16, 1/4 and 9/16 of the depth, as the
paper's 2, 8 and 18 of 32 do. Layers are counted among those with full attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.growing import GrowingTensor
from hillinfer.kv.ranking import best
from hillinfer.kv.selection import Positions
from hillinfer.policies.base import Budgeted
from hillinfer.policies.indexing import Everything, Index, IndexingPolicy

_DEPTHS = (1 / 16, 1 / 4, 9 / 16)


@dataclass(frozen=True)
class OmniKV(Budgeted, IndexingPolicy):
    """filter_layers   which layers filter, ascending; None: three of them, by the model's depth"""

    name: ClassVar[str] = "omnikv"
    source: ClassVar[str] = "OmniKV, ICLR 2025"
    keeps: ClassVar[str] = "everything in the tiers; the keys of the filter layers on the device"

    filter_layers: Sequence[int] | None = None

    def __post_init__(self) -> None:
        layers = self.filter_layers
        if layers is not None and (not layers or sorted(set(layers)) != list(layers) or layers[0] < 0):
            raise SettingError(f"filter_layers is {list(layers)}: give at least one layer, ascending, from 0 on")
        super().__post_init__()

    def _filters(self, layers: int) -> Sequence[int]:
        """The filter layers of a model of so many layers."""
        filters = self.filter_layers
        if filters is None:
            return sorted({int(depth * layers) for depth in _DEPTHS})
        if filters[-1] >= layers:
            raise SettingError(
                f"filter_layers names layer {filters[-1]}, and the model has {layers} with full attention "
                "(the first is 0)"
            )
        return filters

    def whole_layers(self, layers: int) -> frozenset[int]:
        filters = self._filters(layers)
        return frozenset(range(filters[0])) | frozenset(filters)

    def open(self, geometry: Geometry, device: torch.device) -> list[Index]:
        filters = self._filters(geometry.layers)
        indices: list[Index] = []
        latest: _Filter | None = None
        for layer in range(geometry.layers):
            if layer in filters:
                latest = _Filter(self, geometry, device)
                indices.append(latest)
            else:
                indices.append(Everything() if latest is None else _Follower(latest))
        return indices


class _Filter(Index):
    """Ranks by all of its keys, for the layers behind; attends to everything itself."""

    def __init__(self, policy: OmniKV, geometry: Geometry, device: torch.device) -> None:
        self._policy = policy
        self._keys = GrowingTensor(geometry.kv_heads, geometry.head_dim, geometry.dtype, device)
        self.chosen: list[Positions] | None = None

    def extend(self, keys: torch.Tensor, query: torch.Tensor) -> None:
        self._keys.append(keys)

    def select(self, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        tokens = len(self._keys)
        allowed = self._policy.attended(tokens)
        self.chosen = None
        if allowed < tokens:
            logits = torch.matmul(query if scaling >= 0 else -query, self._keys.values.float().transpose(1, 2))
            self.chosen = list(best(logits.amax((0, 1))[None].cpu().numpy(), allowed))
        return None

    @property
    def nbytes(self) -> int:
        return self._keys.nbytes


class _Follower(Everything):
    """Attends to what its filter layer chose in this step."""

    def __init__(self, filter_layer: _Filter) -> None:
        self._filter = filter_layer

    def select(self, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        return self._filter.chosen
