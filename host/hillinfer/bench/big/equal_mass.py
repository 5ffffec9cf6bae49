"""Which budget lets a method capture as much of the attention as another one does."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch

from hillinfer.bench.big.workload import Workload
from hillinfer.csd.contract import Stream
from hillinfer.policies.base import Budgeted
from hillinfer.policies.indexing import Index, IndexingPolicy

_SHARES = tuple(float(share) for share in np.geomspace(0.01, 0.95, 24))
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


def match(policy: IndexingPolicy, workload: Workload, target: float, numbers: int) -> Match:
    """The smallest budget with which the policy captures ``target`` in the first steps of the first stream.

    numbers   so many steps

    Budgets are tried on a grid, and what lies between two of them is taken from a straight line. A share of 1 where no
    smaller one does.
    """
    dial, stream = Dial(1.0), Stream(0, 0)
    index: Index = turnable(policy, dial).open(workload.shape.geometry(1), torch.device("cpu"))[0]
    prompt = workload.prompt(stream)
    for part, _ in workload.chunks(prompt):
        index.extend(part.keys, part.query)
    if index.unsettled:
        index.settle(part.keys for part, _ in workload.chunks(prompt))
    steps = workload.steps[stream]
    found = np.zeros((numbers, len(_SHARES)))
    for number in range(numbers):
        query, cached = workload.geometry.group_heads(steps.query[number]), workload.context + number
        for column, dial.share in enumerate(_SHARES):
            sets = index.select(query[:, :, 0].float(), workload.scaling)
            found[number, column] = 1.0 if sets is None else steps.captured(number, cached, sets)
        index.extend(steps.keys[number], query)
    captured = np.maximum.accumulate(found.mean(0))
    enough = int(np.searchsorted(captured, target))
    if enough == len(_SHARES):
        return Match(1.0, 1.0)
    if enough == 0:
        return Match(_SHARES[0], float(captured[0]))
    share = float(np.interp(target, captured[enough - 1 : enough + 1], _SHARES[enough - 1 : enough + 1]))
    return Match(share, target)
