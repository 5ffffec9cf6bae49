"""A model's head profile: what HeteroCache needs to know about it, measured once or imported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hillinfer.errors import SettingError
from hillinfer.profiling import budgets
from hillinfer.profiling.identity import ModelIdentity
from hillinfer.profiling.roles import LayerRoles, Role, layer_roles
from hillinfer.profiling.similarity import Overlaps

TAU = 0.5
"""τ_stable and τ_sim unless said otherwise; 0.4 stable suits small budgets."""


@dataclass(frozen=True, eq=False)
class HeadProfile:
    """model       whose heads these are
    layers      roles and clusters per full-attention layer
    shares      r_h float64 [L, H]: how many times the mean a compressed head keeps; 0 for the others
    tau_stable, tau_similar   the thresholds that made these roles (the authors' files don't tell: None)
    stability   S_stable float32 [L, H]; overlap: float32 [L, H, H], what edges are drawn by; similarity: S_sim
                float32 [L, H]. None in the authors' files
    origin      text, settings and versions, as recorded in the file
    """

    model: ModelIdentity
    layers: tuple[LayerRoles, ...]
    shares: budgets.Shares
    tau_stable: float | None = None
    tau_similar: float | None = None
    stability: npt.NDArray[np.float32] | None = None
    overlap: Overlaps | None = None
    similarity: npt.NDArray[np.float32] | None = None
    origin: Mapping[str, Any] = field(default_factory=dict)

    @property
    def heads(self) -> int:
        """N_h: KV heads of all layers."""
        return len(self.layers) * self.model.kv_heads

    @property
    def whole(self) -> int:
        """F: volatile and pivot heads, which keep every token."""
        return int(self.heads - np.count_nonzero(budgets.compressed(self.layers)))

    @property
    def counts(self) -> dict[str, int]:
        """Heads per role, every role named."""
        found = Counter(role for layer in self.layers for role in layer.roles)
        return {role.value: found[role] for role in Role}

    def judged_by(self, tau_stable: float | None, tau_similar: float | None) -> HeadProfile:
        """The same measurements with other thresholds (None: those of the profile).

        SettingError for an imported profile: it holds roles, not what they were made of.
        """
        stable = self.tau_stable if tau_stable is None else tau_stable
        similar = self.tau_similar if tau_similar is None else tau_similar
        if (stable, similar) == (self.tau_stable, self.tau_similar):
            return self
        if self.stability is None or self.overlap is None or stable is None or similar is None:
            raise SettingError(
                f"the profile of {self.model.name} was imported with its roles and without the measurements behind "
                "them: tau_stable and tau_similar cannot be chosen anew, leave them out"
            )
        judged = _judge(self.stability, self.overlap, stable, similar)
        return replace(self, tau_stable=stable, tau_similar=similar, **judged)


def judge(
    model: ModelIdentity,
    stability: npt.NDArray[np.float32],
    overlap: Overlaps,
    similarity: npt.NDArray[np.float32],
    tau_stable: float,
    tau_similar: float,
    origin: Mapping[str, Any],
) -> HeadProfile:
    """The profile that measurements [L, H] and overlaps [L, H, H] amount to."""
    judged = _judge(stability, overlap, tau_stable, tau_similar)
    return HeadProfile(
        model,
        **judged,
        tau_stable=tau_stable,
        tau_similar=tau_similar,
        stability=stability,
        overlap=overlap,
        similarity=similarity,
        origin=origin,
    )


def _judge(
    stability: npt.NDArray[np.float32], overlap: Overlaps, tau_stable: float, tau_similar: float
) -> dict[str, Any]:
    for name, tau in (("tau_stable", tau_stable), ("tau_similar", tau_similar)):
        if not 0 <= tau <= 1:
            raise SettingError(f"{name} is {tau}: a share of overlapping tokens is between 0 and 1")
    layers = tuple(
        layer_roles(steady, alike, tau_stable, tau_similar) for steady, alike in zip(stability, overlap, strict=True)
    )
    return {"layers": layers, "shares": budgets.inverse_stability(layers, stability)}
