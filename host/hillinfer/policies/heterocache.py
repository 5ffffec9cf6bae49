"""HeteroCache: every KV head keeps as much on the compute device as its nature demands.

Source: Shi et al., HeteroCache (arXiv 2601.13684; code: github.com/ponytaill/HeteroCache). A head profile (``hillinfer
profile``) tells the roles. Volatile heads and pivots keep everything on the device; anchors and satellites the best
part of the prompt, unsteady ones more of it. Pivots are watched while decoding: when one looks elsewhere, its
satellites are refilled from the lower tiers. Generated tokens are kept. Departures, with their reasons:

- A satellite gets the pivot's best positions by score (the published code takes the first ones by position).
- The window slides: it is judged at every step once it is full, and begins anew after a refill; a sequence is judged by
  itself (the published code judges every fifth step, and by the mean over the batch).
- ``supply="csd"``: the pivot triggers, and the storage device supplies: it scores the whole context against each
  satellite's own query, where the keys lie.
- ``kv_format``: rows on the device may be rounded to 8 or 4 bits; the tiers below keep them as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from hillinfer.errors import ProfileError, SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.row_format import FORMATS
from hillinfer.policies.base import Budgeted
from hillinfer.policies.budget import TokenBudget
from hillinfer.profiling import budgets
from hillinfer.profiling.identity import ModelIdentity, check_profiled
from hillinfer.profiling.profile import TAU, HeadProfile
from hillinfer.profiling.profile_file import default_profile, read_profile

SUPPLIES = ("pivot", "csd")


@dataclass(frozen=True)
class HeteroCache(Budgeted):
    """budget       KV heads' mean share of the prompt that stays on the device (the paper's ρ)
    profile      a file of ``hillinfer profile`` or of the method's authors; none: the default place for this model
    tau_stable   another threshold of stability than the profile's, which makes other roles; 0.4 suits small budgets
    tau_similar  the same of similarity
    drift        median overlap under which a pivot has drifted; none: tau_stable
    window       steps that the median is taken over
    kernel       positions a softmax row is averaged over (odd)
    allocate     share the budget out by instability; off: every compressed head gets the same
    retrieve     refill satellites when their pivot drifts; off: they keep what they have
    supply       which positions a satellite gets: the "pivot"'s best, or the best by the scores of the "csd"
    kv_format    rows on the device: "exact", "int8" or "int4"
    """

    name: ClassVar[str] = "heterocache"
    source: ClassVar[str] = "HeteroCache, arXiv 2601.13684"
    keeps: ClassVar[str] = (
        "on the device: everything of volatile and pivot heads, the best part of others; all in the tiers below"
    )

    budget: TokenBudget | str | int | float = "50%"
    profile: HeadProfile | Path | str | None = None
    tau_stable: float | None = None
    tau_similar: float | None = None
    drift: float | None = None
    window: int = 5
    kernel: int = 5
    allocate: bool = True
    retrieve: bool = True
    supply: str = "pivot"
    kv_format: str = "exact"

    def __post_init__(self) -> None:
        for name in ("tau_stable", "tau_similar", "drift"):
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise SettingError(f"{name} is {share}: a share of overlapping tokens is between 0 and 1")
        if self.window < 1:
            raise SettingError(f"window is {self.window}: a pivot is judged by at least 1 step")
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise SettingError(f"kernel is {self.kernel}: a window round a position is of odd width, 5 say")
        if self.supply not in SUPPLIES:
            raise SettingError(f"supply is {self.supply!r}: it must be 'pivot' or 'csd'")
        if self.kv_format not in FORMATS:
            raise SettingError(f"kv_format is {self.kv_format!r}: it must be one of {', '.join(FORMATS)}")
        super().__post_init__()

    # ---- the profile

    @property
    def heads(self) -> HeadProfile:
        """The profile, judged by this policy's thresholds; SettingError before it is known which one."""
        if isinstance(self.profile, HeadProfile):
            return self.profile.judged_by(self.tau_stable, self.tau_similar)
        if self.profile is None:
            raise SettingError(
                "heterocache needs a head profile: make one with hillinfer profile, and name it (--set profile=FILE)"
            )
        return read_profile(Path(self.profile)).judged_by(self.tau_stable, self.tau_similar)

    def for_model(self, model: ModelIdentity) -> HeteroCache:
        """ProfileError for a profile of another model, ModelError for one with a single KV head per layer."""
        check_profiled(model)
        if self.profile is None:
            path = default_profile(model.name)
            if not path.is_file():
                raise SettingError(
                    f"heterocache needs a head profile of {model.name}, and there is none in {path}: make it with "
                    "hillinfer profile --model ..., or name one (--set profile=FILE)"
                )
            return replace(self, profile=path).for_model(model)
        heads = self.heads
        difference = heads.model.difference(model)
        if difference is not None:
            raise ProfileError(
                f"the profile is of another model ({heads.model.name}): it has {difference}. "
                f"Make one of {model.name} with hillinfer profile"
            )
        return replace(self, profile=heads, tau_stable=None, tau_similar=None)

    def fitted(self, geometry: Geometry, sequences: int) -> HeteroCache:
        model = (geometry.kv_heads, geometry.group, geometry.head_dim)
        check_profiled(ModelIdentity("this model", None, tuple(range(geometry.layers)), *model))
        heads = self.heads
        theirs = (heads.model.kv_heads, heads.model.group or model[1], heads.model.head_dim or model[2])
        if len(heads.layers) != geometry.layers or theirs != model:
            raise ProfileError(
                f"the profile of {heads.model.name} is of {len(heads.layers)} layers of {theirs[0]} KV heads, and this "
                f"model has {geometry.layers} of {model[0]}: make one of this model with hillinfer profile"
            )
        fitted = super().fitted(geometry, sequences)
        return replace(fitted, profile=heads, tau_stable=None, tau_similar=None)

    # ---- the budget

    def check(self, tokens: int) -> None:
        if self.allowance.ratio is not None:
            self.base(max(tokens, 1 << 20))  # a ratio leaves something for the others, or not, at every length
        elif tokens:
            self.base(tokens)

    def base(self, tokens: int) -> int:
        """L_base of a prompt of ``tokens``; SettingError where the whole heads take the budget."""
        allowance, heads = self.allowance, self.heads
        ratio = allowance.ratio if allowance.ratio is not None else allowance.resolve(tokens) / max(1, tokens)
        return budgets.base_length(ratio, tokens, heads.heads, heads.whole)

    def lengths(self, tokens: int) -> npt.NDArray[np.int64]:
        """Rows of the prompt per layer and KV head on the device, int64 [L, H]; all of them where all fit."""
        heads, base = self.heads, self.base(tokens)
        if base >= tokens:
            return np.full((len(heads.layers), heads.model.kv_heads), tokens)
        shares = heads.shares if self.allocate else budgets.compressed(heads.layers).astype(np.float64)
        return budgets.lengths(base, shares, heads.layers, tokens)

    @property
    def drift_threshold(self) -> float:
        """Median overlap under which a pivot has drifted."""
        if self.drift is not None:
            return self.drift
        threshold = self.heads.tau_stable
        return TAU if threshold is None else threshold
