"""HillInfer: attend to the α·N tokens with the highest inner product, evaluated where their keys are.

Source: HillInfer (arXiv 2602.18750), hierarchical importance evaluation. Departures, with their reasons:

- Raw products of different heads cannot be compared: summed, a head with large logits drowns the head that retrieves.
  ``reduce="max-lse"`` ranks by the largest (logit − z) over heads, where z is the head's log-normaliser, a moving
  average of the log-sum-exp that each step's attention leaves behind for free. It orders as softmax probabilities do,
  in one pass and without exponentials. ``reduce="sum"`` is the paper's ranking.
- A token in memory is taken rather than one on the drive that matters hardly more (``cold_margin``): what is hot was
  attended in many steps, a cold token often in this one alone, and its row is what a step waits for.
- A short context is attended whole: below ``floor`` tokens a ratio has no meaning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.query import UNITS_PER_NAT, QuantisedQuery, quantise_query
from hillinfer.kv.selection import Positions, Scores, holding_mass, top
from hillinfer.policies.base import PerHead, SelectingPolicy
from hillinfer.policies.budget import TokenBudget

_MARGIN = 1.0  # nats
_MOST_MARGIN = 100.0  # nats: scores have 16 bits, 128 nats either way


@dataclass(frozen=True)
class HillInfer(SelectingPolicy):
    """alpha    share of the cached tokens attended per step, in (0, 1]; 1 is the full cache, exactly
    tokens   the budget as a number of tokens instead
    budget   the same as every policy has it: a ratio (20%), a number of tokens (512) or bytes (64MiB); before alpha
    mass     attend to only as many as capture this share of the attention (estimated), bounded by the budget
    reduce   "max-lse" (normalised, the default) or "sum" (the paper's raw sum over heads)
    scope    "token": one set for all heads, one contiguous read per token; "head": a set per KV head
    floor    never fewer than this many tokens, context permitting
    decay    weight of the past in the moving average of the normaliser
    cold_margin  nats by which a token in the cold pool must outrank one in memory to be read in its stead. 0: what is
             attended does not depend on where rows are. Default: 1, but 0 with raw sums and with ``mass``,
             whose scores it would falsify
    """

    name: ClassVar[str] = "hillinfer"
    source: ClassVar[str] = "HillInfer, arXiv 2602.18750"
    keeps: ClassVar[str] = "everything: newest tokens on the device, a hot pool in DRAM, all others in the cold pool"

    alpha: float = 0.1
    tokens: int | None = None
    budget: TokenBudget | str | int | float | None = None
    mass: float | None = None
    reduce: str = "max-lse"
    scope: str = "token"
    floor: int = 64
    decay: float = 0.9
    cold_margin: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.alpha <= 1:
            raise SettingError(f"alpha is {self.alpha}: it must be above 0 and at most 1 (0.1 attends to 10 %)")
        if self.tokens is not None and self.tokens < 1:
            raise SettingError(f"tokens is {self.tokens}: a budget is at least 1 token")
        if self.budget is not None and self.tokens is not None:
            raise SettingError("give tokens or budget, which says the same in more ways: not both")
        if self.budget is not None:
            TokenBudget.parse(self.budget)
        if self.mass is not None and not 0 < self.mass <= 1:
            raise SettingError(f"mass is {self.mass}: it must be above 0 and at most 1 (0.95 captures 95 %)")
        if self.reduce not in ("max-lse", "sum"):
            raise SettingError(f"reduce is {self.reduce!r}: it must be 'max-lse' or 'sum'")
        if self.scope not in ("token", "head"):
            raise SettingError(f"scope is {self.scope!r}: it must be 'token' or 'head'")
        if self.mass is not None and self.reduce == "sum":
            raise SettingError("mass needs reduce='max-lse': raw sums over heads are not probabilities")
        if self.floor < 0:
            raise SettingError(f"floor is {self.floor}: it must not be negative")
        if not 0 <= self.decay < 1:
            raise SettingError(f"decay is {self.decay}: it must be at least 0 and below 1")
        if self.cold_margin is not None and not 0 <= self.cold_margin <= _MOST_MARGIN:
            raise SettingError(f"cold_margin is {self.cold_margin}: it must be 0 to {_MOST_MARGIN:g} nats")
        if self.cold_margin and self.reduce == "sum":
            raise SettingError("cold_margin needs reduce='max-lse': raw sums over heads are not in nats")
        if self.cold_margin and self.mass is not None:
            raise SettingError("cold_margin and mass exclude each other: give cold_margin=0, or no mass")

    def fitted(self, geometry: Geometry, sequences: int) -> HillInfer:
        if self.budget is None:
            return self
        return replace(self, budget=TokenBudget.parse(self.budget).fitted(geometry, sequences))

    def attended(self, cached: int) -> int:
        if self.budget is not None:
            wanted = TokenBudget.parse(self.budget).resolve(cached)
        else:
            wanted = math.ceil(self.alpha * cached) if self.tokens is None else self.tokens
        return min(max(wanted, self.floor), cached)

    def exact(self, tokens: int) -> bool:
        return self.attended(tokens) >= tokens and (self.mass is None or self.mass == 1 or tokens <= self.floor)

    def queries(
        self,
        query: npt.NDArray[np.float32],
        scaling: float,
        normaliser: PerHead,
        lowest_exponent: npt.NDArray[np.int8],
    ) -> list[QuantisedQuery]:
        normalised = self.reduce == "max-lse"
        quantised = quantise_query(
            query,
            scaling,
            normaliser if normalised else None,
            lowest_exponent,
            "max" if normalised else "sum",
        )
        return [quantised] if self.scope == "token" else quantised.per_head()

    def select(self, scores: list[Scores]) -> list[Positions]:
        return [top(each, self._count(each)) for each in scores]

    def best_of(self, cached: int) -> int | None:
        own = type(self).select is HillInfer.select  # a subclass that selects otherwise is asked
        return self.attended(cached) if own and self.scope == "token" and self.mass is None else None

    @property
    def handicap(self) -> int:
        if self.cold_margin is not None:
            return round(UNITS_PER_NAT * self.cold_margin)
        return 0 if self.reduce == "sum" or self.mass is not None else round(UNITS_PER_NAT * _MARGIN)

    @property
    def reduction(self) -> str | None:
        if type(self).queries is not HillInfer.queries or self.scope != "token":
            return None
        return "sum" if self.reduce == "sum" else "max"

    def _count(self, scores: Scores) -> int:
        budget = self.attended(len(scores))
        if self.mass is None:
            return budget
        return max(holding_mass(scores, self.mass, budget), min(self.floor, len(scores)))

    def observe(self, normaliser: PerHead | None, lse: PerHead) -> PerHead:
        if normaliser is None:
            return lse
        average: PerHead = self.decay * normaliser + (1 - self.decay) * lse
        return average
