"""What a policy that drops tokens has to say: which rows stay, per layer and KV head.

How such a policy runs. A prompt is read in chunks and attended exactly; every row of it is kept until it is over, which
is when the first token is decoded: only then all of its queries have been seen, in every layer. Then each layer gets
its share of the budget (``layer_budgets``) and keeps as many rows per head, those with the highest ``scores``. From
then on, a step attends to what is kept and to its own token, which takes the place of the row that scores lowest
whenever the budget is used up. Positions never change: a kept key stays rotated as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from hillinfer.kv.geometry import Geometry
from hillinfer.policies.base import Budgeted
from hillinfer.store.kept_rows import FREE, Held


@dataclass
class Chunk:
    """A part of a prompt that has just been attended; its rows are the last ones of ``held``, in order of position.

    query     [H, G, T, d]; scaling: what the model multiplies q·k with
    lse       float32 [H, G, T]: log-sum-exp of each query's logits over all it attended to
    """

    query: torch.Tensor
    lse: torch.Tensor
    scaling: float

    def attention(self, held: Held, first: int = 0, stop: int | None = None) -> torch.Tensor:
        """Softmax rows float32 [H, G, t, n] of the chunk's queries first…stop over the rows held, causal."""
        query, lse = self.query[:, :, first:stop], self.lse[:, :, first:stop]
        length = self.query.shape[2]
        position = torch.arange(held.tokens - length, held.tokens, device=query.device)[first:stop]
        logits = torch.matmul(query.float() * self.scaling, held.keys[:, None].float().transpose(-1, -2))
        later = held.positions[:, None, None, :] > position[:, None]
        return (logits - lse[..., None]).exp().masked_fill(later, 0.0)


class Evictor(ABC):
    """What one stream (a layer's sequence) remembers, and how it ranks its rows.

    weighs   whether ``step`` is to be told the attention weights of every decode step; costs a slower step
    """

    weighs: ClassVar[bool] = False

    def read(self, chunk: Chunk, held: Held) -> None:  # noqa: B027
        """A chunk of a prompt has been attended; it is the end of ``held``."""

    def finish(self, held: Held) -> None:  # noqa: B027
        """The prompt is over; its rows are held in order of position."""

    @abstractmethod
    def scores(self, held: Held, budget: int) -> torch.Tensor:
        """Importance float32 [H, n] of every row, of which ``budget`` per head may stay; of equal ones the newest."""

    def keep(self, held: Held, budget: int) -> list[torch.Tensor]:
        """Slots int64 to keep, by head: at most H · budget in all. The ``budget`` best of each head, unless overridden.

        Called when a prompt is over, and before a step would leave more than that.
        """
        scores = self.scores(held, budget).masked_fill(held.positions == FREE, -torch.inf)
        newest = held.positions.argsort(dim=1, descending=True)
        ranked = newest.gather(1, scores.gather(1, newest).argsort(stable=True, dim=1, descending=True))
        return [best[: min(budget, count)] for best, count in zip(ranked, held.counts, strict=True)]

    def step(self, held: Held, weights: torch.Tensor | None) -> None:  # noqa: B027
        """A token was decoded, its row is the last of each head; ``weights`` float32 [H, G, n] if ``weighs``."""


@dataclass(frozen=True)
class EvictingPolicy(Budgeted):
    """Drops tokens to stay within its budget: they can't be attended again."""

    keeps: ClassVar[str] = "rows per KV head, in device memory; all others are dropped"
    drops: ClassVar[bool] = True

    @abstractmethod
    def open(self, geometry: Geometry) -> Evictor:
        """A new stream's memory."""

    def layer_budgets(self, layers: Sequence[Evictor], cached: int) -> list[int]:
        """Rows per KV head that each layer may keep, of ``cached`` ones; their mean is at most the budget."""
        return [self.attended(cached)] * len(layers)

    @property
    def bounded(self) -> bool:
        """Whether generated tokens stay within the budget too; if not, it bounds what is kept of the prompt."""
        return True
