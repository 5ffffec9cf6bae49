"""PyramidKV: SnapKV's ranking, and budgets that fall linearly with depth.

Source: Cai et al., PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling (arXiv 2406.02069).
Of the budget beyond the window the last layer gets 1/``beta`` of the mean and the first the rest of twice the mean;
where the first would get more than there is, it gets all and the last more, so that the mean is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hillinfer.errors import SettingError
from hillinfer.policies.evicting import Evictor
from hillinfer.policies.shares import whole
from hillinfer.policies.snapkv import SnapKV


@dataclass(frozen=True)
class PyramidKV(SnapKV):
    """beta    the mean over the last layer's budget, at least 1; larger is steeper, 1 is flat"""

    name: ClassVar[str] = "pyramidkv"
    source: ClassVar[str] = "PyramidKV, arXiv 2406.02069"
    keeps: ClassVar[str] = (
        "what the prompt's end looks at, fewer rows the deeper the layer, in device memory; all others are dropped"
    )

    beta: float = 20

    def __post_init__(self) -> None:
        if self.beta < 1:
            raise SettingError(f"beta is {self.beta}: it must be at least 1 (1 gives every layer the same)")
        super().__post_init__()

    def layer_budgets(self, layers: Sequence[Evictor], cached: int) -> list[int]:
        mean, most = self.attended(cached) - self.window, cached - self.window
        if mean <= 0 or len(layers) == 1:
            return super().layer_budgets(layers, cached)
        first = min(2 * mean - mean / self.beta, most)
        last = 2 * mean - first
        step = (first - last) / (len(layers) - 1)
        return [self.window + rows for rows in whole([first - layer * step for layer in range(len(layers))])]
