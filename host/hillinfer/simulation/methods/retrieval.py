"""An index in DRAM says which rows to bring from a drive (Quest, LeoAM, InfiniGen)."""

from __future__ import annotations

from dataclasses import dataclass

from hillinfer.errors import SettingError
from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.trace import LayerStep


@dataclass(frozen=True)
class Retrieval(Method):
    """The host looks through its index, reads the chunks it chose, and copies them to the GPU.

    index   bytes of the index per byte of the keys it stands for: 2/chunk for bounds, the share of columns for a
            partial key
    chunk   tokens that are read together
    budget  share of the tokens that is brought; None: as recorded
    whole   so many first layers bring everything
    ahead   the next layer's rows come while a layer computes, by a predicted query
    in_dram share of what is brought that is there already
    """

    index: float
    chunk: int = 1
    budget: float | None = None
    whole: int = 0
    ahead: bool = False
    in_dram: float = 0.0

    def __post_init__(self) -> None:
        budget = 1.0 if self.budget is None else self.budget
        if not (self.index > 0 and self.chunk >= 1 and 0 < budget <= 1 and self.whole >= 0 and 0 <= self.in_dram <= 1):
            raise SettingError("an index has a size, chunks of at least a token, and a budget above 0 up to 1")

    def check(self, at: Machine, tokens: int) -> None:
        nbytes = tokens * at.shape.token_bytes
        in_dram = nbytes * (self.index / 2 + self.in_dram * (self.budget or 1.0))
        at.check(in_dram=in_dram, on_drive=nbytes, plain=True)

    def _rows(self, work: LayerStep, layer: int) -> float:
        if layer < self.whole:
            return work.tokens
        return work.attended if self.budget is None else self.budget * work.tokens

    def bring(self, at: Machine, work: LayerStep, layer: int) -> Steps:
        rows = self._rows(work, layer)
        if layer >= self.whole:
            yield at.score(work.tokens * self.index * at.shape.key_elements * at.shape.kv_bytes)
            yield at.select(work.tokens / self.chunk)
        cold = rows if layer < self.whole else rows * (1 - self.in_dram)
        requests = at.sequences if layer < self.whole else cold / self.chunk
        near = at.start(at.copy(rows - cold))
        yield from at.read(cold, requests, plain=True)
        yield from at.copy(cold, gather=False)
        yield near

    def attend(self, at: Machine, work: LayerStep, layer: int) -> Steps:
        yield at.attend(self._rows(work, layer) + at.sequences)
