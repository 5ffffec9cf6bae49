"""What the timing model asks of a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import simpy

from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.trace import LayerStep


class Method(ABC):
    """How a step goes through its layers; a dataclass whose fields are its settings."""

    ahead: bool = False
    """Whether the next layer's rows are brought while a layer computes."""

    def check(self, at: Machine, tokens: int) -> None:
        """MemoryBudgetError unless the KV of ``tokens`` tokens, of all sequences together, has room on the box."""
        at.check(on_device=tokens * at.shape.token_bytes)

    def step(self, at: Machine, works: Sequence[LayerStep]) -> Steps:
        """One step: in every layer projections, what this method brings, attention, and the feed-forward part."""
        shape, coming = at.shape, at.start(self.bring(at, works[0], 0)) if self.ahead else None
        queries = shape.hidden * shape.query_heads * shape.head_dim * shape.weight_bytes
        for layer, work in enumerate(works):
            following = layer + 1
            if at.hardware.software is not None:
                yield at.overhead("model", at.hardware.software.model_layer)
            brought, coming = coming, None
            if brought is not None and following < len(works):
                coming = at.start(self._bring_after(brought, at, works[following], following))
            if following < len(works):
                yield from self.foretell(at, works[following], following)
            yield at.weights(shape.attention_weights - queries, "q, k, v")
            yield brought if brought is not None else at.start(self.bring(at, work, layer))
            yield from self.attend(at, work, layer)
            yield at.weights(queries + shape.mlp_weights, "o, feed-forward")
        if at.hardware.software is not None:
            yield at.overhead("model", at.hardware.software.model_step)
        yield at.weights(shape.head_weights, "head")

    def _bring_after(self, before: simpy.Event, at: Machine, work: LayerStep, layer: int) -> Steps:
        """A layer's turn comes when the one before has what it needs: it must not take anything away from it."""
        yield before
        yield from self.bring(at, work, layer)

    def foretell(self, at: Machine, work: LayerStep, layer: int) -> Steps:  # noqa: ARG002
        """On the step's own thread, before a layer's projections: what the next ``layer`` will ask for."""
        yield from ()

    @abstractmethod
    def bring(self, at: Machine, work: LayerStep, layer: int) -> Steps:
        """Find out what a layer attends to, and bring it to where it is attended."""

    def attend(self, at: Machine, work: LayerStep, layer: int) -> Steps:  # noqa: ARG002
        """Attention, all rows being there."""
        yield at.attend(work.attended + at.sequences)
