"""Everything is attended, wherever it lies."""

from __future__ import annotations

from dataclasses import dataclass

from hillinfer.errors import SettingError, nearest
from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.trace import LayerStep

TIERS = ("device", "dram", "drive")


@dataclass(frozen=True)
class Full(Method):
    """The whole KV cache crosses every link between where it lies and where it is attended, at every step.

    tier    where it lies: "device" (the GPU's memory), "dram", or "drive" (full offload)
    ahead   the next layer's KV comes while a layer computes
    share   of the KV that is not in DRAM, of tier "drive"
    """

    tier: str = "dram"
    ahead: bool = True
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.tier not in TIERS:
            raise SettingError(f"there is no tier {self.tier!r}{nearest(self.tier, TIERS)}")
        if not 0 <= self.share <= 1:
            raise SettingError(f"share is {self.share}: a share lies between 0 and 1")

    def check(self, at: Machine, tokens: int) -> None:
        nbytes = tokens * at.shape.token_bytes
        if self.tier == "device":
            at.check(on_device=nbytes)
        elif self.tier == "dram":
            at.check(in_dram=nbytes)
        else:
            at.check(in_dram=nbytes * (1 - self.share), on_drive=nbytes, plain=True)

    def bring(self, at: Machine, work: LayerStep, layer: int) -> Steps:  # noqa: ARG002
        if self.tier == "device":
            return
        cold = work.tokens * self.share if self.tier == "drive" else 0.0
        yield from at.read(cold, at.sequences, plain=True)
        yield from at.copy(work.tokens, gather=False)

    def attend(self, at: Machine, work: LayerStep, layer: int) -> Steps:  # noqa: ARG002
        yield from at.attend_stock(work.tokens)
