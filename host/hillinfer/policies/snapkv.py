"""SnapKV: what the end of the prompt looks at is what the answer will need.

Source: Li et al., SnapKV: LLM Knows What You Are Looking for Before Generation (arXiv 2404.14469). Importance is the
softmax of the last ``window`` queries, summed, averaged over the heads of a group, and pooled, so that a token brings
its neighbours. Departure: the paper keeps every generated token on top (``keep_generated``); here, by default, a
generated token takes the place of the prompt token that ranks lowest, so that the budget holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.policies.evicting import Evictor
from hillinfer.policies.window import WindowEvictor, WindowPolicy

POOLINGS = ("mean", "max")


@dataclass(frozen=True)
class SnapKV(WindowPolicy):
    """pooling    "mean" or "max" over the kernel"""

    name: ClassVar[str] = "snapkv"
    source: ClassVar[str] = "SnapKV, arXiv 2404.14469"
    keeps: ClassVar[str] = "what the prompt's end looks at, per KV head in device memory; all others are dropped"

    pooling: str = "mean"

    def __post_init__(self) -> None:
        if self.pooling not in POOLINGS:
            raise SettingError(f"pooling is {self.pooling!r}: it must be 'mean' or 'max'")
        super().__post_init__()

    def open(self, geometry: Geometry) -> Evictor:
        return _Snap(self.window, self.kernel, self.pooling)


class _Snap(WindowEvictor):
    def __init__(self, window: int, kernel: int, pooling: str) -> None:
        super().__init__(window)
        self._kernel, self._pool = kernel, F.avg_pool1d if pooling == "mean" else F.max_pool1d

    def importance(self, attention: torch.Tensor) -> torch.Tensor:
        return self._pool(attention.sum(2).mean(1), self._kernel, 1, self._kernel // 2)
