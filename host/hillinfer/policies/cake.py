"""CAKE: rows that are looked at much or unsteadily, and more of them in layers whose attention is spread and shifts.

Source: Qin et al., CAKE: Cascading and Adaptive KV Cache Eviction with Layer Preferences (arXiv 2503.12491). Over the
softmax rows of the window, up to the window itself: a token's importance is mean + γ·variance over the queries, pooled,
averaged over the group; a layer's preference is P = H^(1/τ1)·V^(1/τ2), of their entropy H and their variance V over
queries, summed over heads. Departures: the budgets are shared out once, when the prompt is over (the paper cascades
while it reads, to the same budgets with less memory meanwhile); what a layer cannot use goes to the others in
proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.policies.evicting import Evictor
from hillinfer.policies.shares import spread, whole
from hillinfer.policies.window import WindowEvictor, WindowPolicy

_TINY = 1e-10


@dataclass(frozen=True)
class CAKE(WindowPolicy):
    """gamma    weight of the variance in a row's importance
    tau1     entropy counts as H^(1/tau1) in a layer's preference: smaller counts more
    tau2     variance counts as V^(1/tau2)
    """

    name: ClassVar[str] = "cake"
    source: ClassVar[str] = "CAKE, arXiv 2503.12491"
    keeps: ClassVar[str] = (
        "what the prompt's end looks at, more rows in layers that need them, in device memory; all others are dropped"
    )

    gamma: float = 200
    tau1: float = 1
    tau2: float = 1

    def __post_init__(self) -> None:
        if self.gamma < 0:
            raise SettingError(f"gamma is {self.gamma}: it must not be negative")
        for name in ("tau1", "tau2"):
            if getattr(self, name) <= 0:
                raise SettingError(f"{name} is {getattr(self, name)}: it must be above 0")
        super().__post_init__()

    def open(self, geometry: Geometry) -> Evictor:
        return _Cake(self)

    def layer_budgets(self, layers: Sequence[Evictor], cached: int) -> list[int]:
        mean, most = self.attended(cached) - self.window, cached - self.window
        if mean <= 0:
            return super().layer_budgets(layers, cached)
        preferences = [layer.preference for layer in layers if isinstance(layer, _Cake)]
        return [self.window + rows for rows in whole(spread(preferences, mean * len(layers), most))]


class _Cake(WindowEvictor):
    def __init__(self, policy: CAKE) -> None:
        super().__init__(policy.window)
        self._policy = policy
        self.preference = 0.0

    def importance(self, attention: torch.Tensor) -> torch.Tensor:
        policy = self._policy
        variance = attention.var(2, correction=min(1, attention.shape[2] - 1))
        entropy = -(attention * (attention + _TINY).log()).sum()
        self.preference = float(entropy ** (1 / policy.tau1) * variance.sum() ** (1 / policy.tau2))
        rows = attention.mean(2) + policy.gamma * variance
        return F.avg_pool1d(rows, policy.kernel, 1, policy.kernel // 2).mean(1)
