"""What a policy is: which tokens are attended, never where they are.

Kinds of policy, and who runs them (``pipeline/opening.py``):

    SelectingPolicy   keeps every token, ranks all of them at each step by integer scores made where the keys lie
    IndexingPolicy    keeps every token, picks those of a step by an index in fast memory (``policies/indexing.py``)
    EvictingPolicy    drops tokens: keeps rows per KV head in device memory (``policies/evicting.py``)
    HeteroCache       parts of the context per KV head in device memory, all of it in the tiers
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.query import QuantisedQuery
from hillinfer.kv.selection import Positions, Scores
from hillinfer.policies.budget import TokenBudget
from hillinfer.profiling.identity import ModelIdentity

PerHead = npt.NDArray[np.float32]
"""float32 [H, G]: a number per query head, by KV head."""

_SHORT = 1024  # tokens: a ratio of a shorter context is judged as if it had so many; its policy keeps its minimum
_P = TypeVar("_P", bound="Policy")
_B = TypeVar("_B", bound="Budgeted")


@dataclass(frozen=True)
class Policy(ABC):
    """A method. Its dataclass fields are its settings, checked in ``__post_init__`` (SettingError names the fix).

    name     what ``--policy`` calls it
    source   paper or library it comes from
    keeps    what is kept where, in a line
    drops    whether tokens are thrown away, and cannot come back

    A policy object holds no state: what a stream must remember between steps is an object of its own, which goes
    with the engine.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    keeps: ClassVar[str]
    drops: ClassVar[bool] = False

    def for_model(self: _P, model: ModelIdentity) -> _P:
        """The policy for one model, whatever its weights tell about it; raises for a model it cannot serve."""
        return self

    def fitted(self: _P, geometry: Geometry, sequences: int) -> _P:
        """The policy for one cache: a budget in bytes becomes tokens. SettingError for one below the minimum."""
        return self

    def check(self, tokens: int) -> None:  # noqa: B027  # most have nothing to check
        """SettingError, before anything is computed, if a context of ``tokens`` per sequence cannot be served."""


@dataclass(frozen=True)
class Budgeted(Policy):
    """A policy with a budget of tokens per KV head and layer, on average.

    budget   of the cached tokens: a ratio (20%), a number of tokens (512), or bytes of the whole cache's KV (64MiB)
    """

    budget: TokenBudget | str | int | float = "20%"

    def __post_init__(self) -> None:
        allowance = self.allowance
        if allowance.tokens is not None:
            self._check(allowance.tokens)

    @property
    def minimum(self) -> int:
        """Fewest tokens this policy makes sense with (sinks and window, say)."""
        return 1

    @property
    def allowance(self) -> TokenBudget:
        """The budget, read."""
        return TokenBudget.parse(self.budget)

    def attended(self, cached: int) -> int:
        """Tokens allowed per KV head, of ``cached`` ones; never fewer than the minimum, context permitting."""
        return min(cached, max(self.minimum, self.allowance.resolve(cached)))

    def fitted(self: _B, geometry: Geometry, sequences: int) -> _B:
        return replace(self, budget=self.allowance.fitted(geometry, sequences))

    def check(self, tokens: int) -> None:
        if self.allowance.ratio is not None:
            self._check(self.allowance.resolve(max(tokens, _SHORT)))

    def _check(self, allowed: int) -> None:
        if allowed < self.minimum:
            raise SettingError(
                f"a budget of {self.allowance} allows {allowed} tokens, and {self.name} needs at least {self.minimum}"
                f"{f' ({self.why_minimum})' if self.why_minimum else ''}: give more (--budget {self.minimum})"
            )

    @property
    def why_minimum(self) -> str:
        """What the minimum is made of, for the error: ``4 sinks and 1 recent token``."""
        return ""


@dataclass(frozen=True)
class SelectingPolicy(Policy):
    """Keeps every token; at each step ranks all of them and attends to the best.

    What a stream remembers between steps is the ``normaliser`` that ``observe`` returns.
    """

    @abstractmethod
    def attended(self, cached: int) -> int:
        """Most tokens attended per step (and head, where heads select their own), of ``cached`` ones."""

    @abstractmethod
    def exact(self, tokens: int) -> bool:
        """Whether everything is attended whatever the scores, so that nothing needs to be scored."""

    @abstractmethod
    def queries(
        self,
        query: npt.NDArray[np.float32],
        scaling: float,
        normaliser: PerHead,
        lowest_exponent: npt.NDArray[np.int8],
    ) -> list[QuantisedQuery]:
        """What the keys are to be scored with, one list of scores each, for a query float32 [H, G, d]."""

    @abstractmethod
    def select(self, scores: list[Scores]) -> list[Positions]:
        """Ascending positions to attend for each list of scores int16 [tokens]: one for all heads, or one per head."""

    def best_of(self, cached: int) -> int | None:
        """How many of ``cached`` tokens are attended, if those are the ones with the highest scores for one query.

        None: there are more queries, or more to it than that, and ``select`` has to be asked.
        """
        return None

    @property
    def reduction(self) -> str | None:
        """How ``queries`` reduces, "max" (of normalised scores) or "sum" (of raw ones), if it gives one query for all
        heads by ``quantise_query`` and no more; None: it has to be asked.
        """
        return None

    @property
    def handicap(self) -> int:
        """What the score of a token loses whose row is in the cold pool only; 0: where rows are makes no difference."""
        return 0

    @abstractmethod
    def observe(self, normaliser: PerHead | None, lse: PerHead) -> PerHead:
        """The normaliser after a step whose attention left the log-sum-exp ``lse`` (None before the first)."""
