"""HeteroCache (arXiv 2601.13684): parts of the context per head on the GPU, satellites refilled behind the steps."""

from __future__ import annotations

from dataclasses import dataclass

from hillinfer.errors import SettingError
from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.trace import LayerStep


@dataclass(frozen=True)
class HeteroCache(Method):
    """Heads attend to what of theirs is on the GPU; when a pivot drifts, its satellites' rows come over the link.

    budget     share of the KV that is on the GPU
    satellites share of the KV heads that are satellites: what lies whole in host memory
    refilled   share of the satellites' rows on the GPU that a step replaces
    """

    budget: float = 0.5
    satellites: float = 196 / 256
    refilled: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.budget <= 1 and 0 <= self.satellites <= 1 and 0 <= self.refilled <= 1):
            raise SettingError("budget, satellites and refilled are shares, and a budget is above 0")

    def check(self, at: Machine, tokens: int) -> None:
        nbytes = tokens * at.shape.token_bytes
        at.check(on_device=self.budget * nbytes, in_dram=self.satellites * nbytes)

    def bring(self, at: Machine, work: LayerStep, layer: int) -> Steps:
        """What a step refills is there before the same layer attends in the next one: waited for if it is not."""
        rows = self.refilled * self.satellites * self.budget * work.tokens
        coming = at.arriving.pop(layer, None)
        if coming is not None:
            yield coming
        if rows:
            at.arriving[layer] = at.start(at.copy(rows))

    def attend(self, at: Machine, work: LayerStep, layer: int) -> Steps:  # noqa: ARG002
        yield at.attend(self.budget * work.tokens + at.sequences)
