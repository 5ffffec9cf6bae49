"""Which budget lets a method capture as much of the attention as another one does."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch

from hillinfer.bench.big.workload import Workload
from hillinfer.csd.contract import Stream
from hillinfer.policies.base import Budgeted
from hillinfer.policies.indexing import Index, IndexingPolicy

_TRIALS = 9  # halvings: to a five-hundredth of the context
P = TypeVar("P", bound=IndexingPolicy)


@dataclass
class Dial:
    """A budget that can be turned while a policy is at work: a share of the cached tokens."""

    share: float


def turnable(policy: P, dial: Dial) -> P:
    """The same policy, attending to as much as ``dial`` says."""

    def attended(self: Budgeted, cached: int) -> int:
        return min(cached, max(self.minimum, int(dial.share * cached)))

    kind: type[P] = type(f"Turnable{type(policy).__name__}", (type(policy),), {"attended": attended})
    return kind(**{field.name: getattr(policy, field.name) for field in dataclasses.fields(policy)})


@dataclass(frozen=True)
class Match:
    """share of the cached tokens, and what it captured where it was searched."""

    share: float
    captured: float


def match(policy: IndexingPolicy, workload: Workload, target: float, numbers: Sequence[int]) -> Match:
    """The smallest budget with which the policy captures ``target`` on steps of the first stream.

    numbers   of the steps; without the keys of the steps before them, which change next to nothing

    A share of 1 where no smaller one does.
    """
    dial, stream = Dial(1.0), Stream(0, 0)
    device = torch.device("cpu")
    index: Index = turnable(policy, dial).open(workload.shape.geometry(1), device)[0]
    prompt = workload.prompt(stream)
    for part, _ in workload.chunks(prompt):
        index.extend(part.keys, part.query)
    if index.unsettled:
        index.settle(part.keys for part, _ in workload.chunks(prompt))
    steps, geometry = workload.steps[stream], workload.geometry

    def captured() -> float:
        found = []
        for number in numbers:
            sets = index.select(geometry.group_heads(steps.query[number])[:, :, 0].float(), workload.scaling)
            after = workload.context + number
            found.append(1.0 if sets is None else steps.captured(number, after, sets))
        return statistics.mean(found)

    low, high = 0.0, 1.0
    best = Match(1.0, 1.0)
    for _ in range(_TRIALS):
        dial.share = (low + high) / 2
        share = captured()
        if share >= target:
            high, best = dial.share, Match(dial.share, share)
        else:
            low = dial.share
    return best
