"""A policy at a budget, as it is compared: written ``h2o@20%``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import HillInferError, SettingError
from hillinfer.integrations.transformers import HillInferCache
from hillinfer.policies import Policy, create, find

FULL = "full"
_HOT = 1.5  # times the budget: DRAM for the pool of what keeps everything, so that it holds more than one step's set


@dataclass(frozen=True)
class Contender:
    """A policy's registered name, its budget as a share of the cached tokens, and its other settings."""

    policy: str
    budget: float = 1.0
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def full(self) -> bool:
        """Whether it is the stock cache."""
        return self.policy == FULL

    def __str__(self) -> str:
        return FULL if self.full else f"{self.policy}@{self.budget * 100:g}%"

    def create(self) -> Policy:
        """The policy; SettingError for settings out of range."""
        return create(self.policy, budget=self.budget, **self.settings)

    @contextmanager
    def open(self, model: PreTrainedModel, tokens: int, cold_dir: Path | None) -> Iterator[HillInferCache]:
        """An empty cache, checked for ``tokens``; raises HillInferError if the policy can't have this budget."""
        store = StoreSettings(hot_bytes=Budget(share=_HOT * self.budget), cold_dir=cold_dir)
        with HillInferCache(model, self.create(), store=store) as cache:
            cache.expect(tokens)
            yield cache

    def undefined(self, model: PreTrainedModel, tokens: int, cold_dir: Path | None) -> str:
        """Why there is no such policy at this budget and context; "" if there is."""
        try:
            with self.open(model, tokens, cold_dir):
                return ""
        except HillInferError as error:
            return str(error)


def parse_contenders(text: str, settings: Mapping[str, Mapping[str, Any]]) -> list[Contender]:
    """Read ``"hillinfer@10%,h2o@20%"``; the full cache comes first, named or not.

    settings   of policies by name, beside the budget

    SettingError for an unknown policy (with the nearest name), a budget that is no share, or one named twice.
    """
    found = [Contender(FULL)]
    for word in filter(None, (part.strip() for part in text.split(","))):
        name, _, budget = (part.strip() for part in word.partition("@"))
        find(name)
        if name == FULL:
            if budget:
                raise SettingError(f"{word!r}: the full cache keeps everything: write full, without a budget")
            continue
        contender = Contender(name, _share(word, name, budget), settings.get(name, {}))
        if str(contender) in map(str, found):
            raise SettingError(f"{contender} is named twice: leave one out")
        found.append(contender)
    return found


def _share(word: str, name: str, budget: str) -> float:
    try:
        share = float(budget.removesuffix("%")) / (100 if budget.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise SettingError(f"{word!r} has no budget above 0% and up to 100%: write {name}@20%")
    return share
