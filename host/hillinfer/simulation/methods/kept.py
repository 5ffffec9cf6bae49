"""Tokens are dropped until a budget is kept; what is kept is attended (H2O, StreamingLLM, SnapKV)."""

from __future__ import annotations

from dataclasses import dataclass

from hillinfer.errors import SettingError
from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.trace import LayerStep


@dataclass(frozen=True)
class Kept(Method):
    """What is kept crosses the links at every step, as ``Full``'s cache does.

    budget  share of the tokens that is kept; None: as recorded
    tier    where it lies: "device", "dram" or "drive"
    ahead   the next layer's rows come while a layer computes
    policy  whose steps these are on a box without a GPU; "": one that weighs nothing, as StreamingLLM
    """

    budget: float | None = None
    tier: str = "device"
    ahead: bool = True
    policy: str = ""

    def __post_init__(self) -> None:
        if self.tier not in ("device", "dram", "drive") or (self.budget is not None and not 0 < self.budget <= 1):
            raise SettingError("what is kept lies on device, dram or drive, and is a share above 0 up to 1")

    def _rows(self, work: LayerStep) -> float:
        return work.attended if self.budget is None else self.budget * work.tokens

    def check(self, at: Machine, tokens: int) -> None:
        nbytes = tokens * at.shape.token_bytes * (1.0 if self.budget is None else self.budget)
        place = {"device": "on_device", "dram": "in_dram", "drive": "on_drive"}[self.tier]
        at.check(**{place: nbytes}, plain=True)

    def bring(self, at: Machine, work: LayerStep, layer: int) -> Steps:  # noqa: ARG002
        if self.tier == "device":
            return
        if self.tier == "drive":
            yield from at.read(self._rows(work), at.sequences, plain=True)
        yield from at.copy(self._rows(work), gather=False)

    def attend(self, at: Machine, work: LayerStep, layer: int) -> Steps:  # noqa: ARG002
        yield from at.attend_kept(self._rows(work) + at.sequences, self.policy)
