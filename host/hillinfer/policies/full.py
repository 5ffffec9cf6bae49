"""Everything attended at every step: what the others are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from hillinfer.kv.geometry import Geometry
from hillinfer.policies.indexing import Everything, Index, IndexingPolicy


@dataclass(frozen=True)
class Full(IndexingPolicy):
    """``generate`` and the command line take transformers' own DynamicCache for it, and nothing of this engine runs.

    Given to ``HillInferCache``, it is full attention with offload: every row is fetched from its tier at every step.
    """

    name: ClassVar[str] = "full"
    source: ClassVar[str] = "transformers DynamicCache"
    keeps: ClassVar[str] = "everything, in the memory of the compute device"

    def attended(self, cached: int) -> int:
        return cached

    def open(self, geometry: Geometry, device: torch.device) -> list[Index]:
        return [Everything() for _ in range(geometry.layers)]
