"""What the model adapter asks of an engine, whichever kind of memory is behind it.

The life of a sequence: ``expect`` checks that it will fit, ``exact`` reads its prompt in chunks of any size, ``decode``
takes its tokens one by one, in every layer; a conversation goes back to ``exact`` for the next prompt. ``close`` ends
all sequences. Prompts are attended exactly by every engine, so that the size of their chunks changes no result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

import torch

from hillinfer.csd.contract import Device, Stream
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.trace import Trace
from hillinfer.policies.base import Policy
from hillinfer.store.ledger import Ledger

if TYPE_CHECKING:
    from hillinfer.pipeline.chosen import Chosen
    from hillinfer.store.token_stream import TokenStream

Witness = Callable[[int, int, list[Positions]], None]
"""``witness(layer, sequence, sets)``: what a decode step attends to, besides its own token. Ascending positions in the
sequence (padding not counted), int64: one set for all heads, or one per KV head."""


class Recorder(Protocol):
    """Told what every decode step of a tiered engine has to do, and where its rows are; for studies."""

    def chose(self, stream: TokenStream, chosen: Chosen | None) -> None:
        """A step attends to what was chosen (None: to everything), as the tiers are now."""

    def settled(self, stream: Stream, moved: int) -> None:
        """Behind a step so many rows entered the hot pool."""


class Engine(ABC):
    """The KV cache of one model and batch at work.

    geometry    shapes of the cache
    policy      which tokens are attended, fitted to this cache
    sequences   the batch size
    ledger      bytes per tier, and what moved
    trace       what ran when, where that is recorded
    csd         the storage device behind it, if there is one
    scoring_copy  what of the keys is scanned (``hillinfer.kv.copies``); None: nothing is scored
    witness     told of every decode step's sets; for tests and studies
    """

    geometry: Geometry
    policy: Policy
    sequences: int
    ledger: Ledger
    trace: Trace
    csd: Device | None = None
    scoring_copy: str | None = None
    witness: Witness | None = None

    @property
    def balanced(self) -> tuple[float | None, float | None]:
        """The host's share of the scoring, and |T_cpu − T_csd| / max of the last steps; None where not measured."""
        return None, None

    @abstractmethod
    def expect(self, tokens: int) -> None:
        """Check, before anything is computed, that ``tokens`` per sequence fit budgets, memory and disk."""

    @abstractmethod
    def exact(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
        *,
        decoding: bool = False,
    ) -> torch.Tensor:
        """Causal attention of new tokens to themselves and to everything kept; then they are cached.

        query [H·G, T, d], keys and values [H, T, d] → [H·G, T, d].
        decoding   the tokens are generated ones, not a part of a prompt
        """

    @abstractmethod
    def admit(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        lse: torch.Tensor,
        scaling: float,
    ) -> None:
        """Cache a part of a prompt that has been attended exactly elsewhere: what ``exact`` does, less the attention.

        So that one prefill serves the caches of many policies.

        query [H, G, T, d], keys and values [H, T, d], lse float32 [H, G, T]: log-sum-exp of each query's logits.
        """

    @abstractmethod
    def decode(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        """Attention of one new token to itself and to the tokens the policy chooses; then it is cached.

        query [H·G, 1, d], keys and values [H, 1, d] → [H·G, 1, d].
        """

    def begin(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> Callable[[], torch.Tensor]:
        """``decode`` up to where it would wait for rows of the cold pool; called, what it returns ends the step.

        Steps of other sequences may begin meanwhile. They end in the order they began, before the next layer's begin.
        """
        out = self.decode(layer, sequence, query, keys, values, scaling)
        return lambda: out

    def decode_batch(
        self, layer: int, steps: Iterable[tuple[int, torch.Tensor, torch.Tensor, torch.Tensor]], scaling: float
    ) -> Iterator[torch.Tensor]:
        """``decode`` of several sequences, each (sequence, query, keys, values); one step's rows come while the next is
        scored. No more than two are under way: the drive is busy, and rows take the memory of two steps."""
        ending: Callable[[], torch.Tensor] | None = None
        for sequence, query, keys, values in steps:
            begun = self.begin(layer, sequence, query, keys, values, scaling)
            if ending is not None:
                yield ending()
            ending = begun
        if ending is not None:
            yield ending()

    def announce(  # noqa: B027
        self, layer: int, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        """The whole batch's ``decode`` calls of ``layer`` are next: query [B, H·G, 1, d], keys and values [B, H, 1, d].

        Only so that what the host needs of them can be on its way at once; nobody has to.
        """

    def foretell(self, layer: int, sequence: int, query: torch.Tensor, scaling: float) -> None:  # noqa: B027
        """A step of ``layer`` is likely to have the query [H·G, 1, d]; called while an earlier layer computes.

        Only for policies that predict. A step that was not foretold goes by its own query.
        """

    @abstractmethod
    def settled_ledger(self) -> Ledger:
        """The counts, with nothing left to do behind a step."""

    @abstractmethod
    def close(self) -> None:
        """Free all memory, stop all work and remove every file. May be called twice."""
