"""An index in DRAM says which rows to bring from a drive (Quest, LeoAM, InfiniGen)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hillinfer.errors import SettingError
from hillinfer.simulation.hardware import Way
from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.methods.tiers import ask, attend_found, attend_whole, settle
from hillinfer.simulation.requests import asked
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
    policy  whose steps these are on a box without a GPU; there rows lie as was recorded, but for layers that bring
            everything of a run in which they did not
    """

    index: float
    chunk: int = 1
    budget: float | None = None
    whole: int = 0
    ahead: bool = False
    in_dram: float = 0.0
    policy: str = ""

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
        if self._here(at):
            return
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
        if not self._here(at):
            yield at.attend(self._rows(work, layer) + at.sequences)
            return
        if not self._chosen(work, layer):
            assert at.hardware.software is not None
            yield from attend_whole(at, self._all(at, work), at.hardware.software)
            return
        if layer not in at.arriving:
            yield from self._choose(at, work, layer)
        coming = at.arriving.pop(layer)
        way = self._way(at)
        waited = [coming] if work.cold_rows else []
        yield from attend_found(at, work, waited, share=work.each_head / work.attended, rate=way.attend)
        at.behind.append(lambda: settle(at, work))

    # ---- on the processor, by this project's engine

    def _here(self, at: Machine) -> bool:
        return not at.on_gpu and at.hardware.software is not None and bool(self.policy)

    def _way(self, at: Machine) -> Way:
        assert at.hardware.software is not None
        return at.hardware.software.way(self.policy)

    def _chosen(self, work: LayerStep, layer: int) -> bool:
        """Whether a layer goes by the index; heads together may take everything all the same."""
        return layer >= self.whole and work.each_head < work.tokens

    def _all(self, at: Machine, work: LayerStep) -> LayerStep:
        """What a layer does that brings everything."""
        if work.each_head >= work.tokens:
            return work
        cold = round(work.tokens * (1 - self.in_dram))
        requests, _ = asked(np.arange(cold), round(at.shape.row_bytes))
        return replace(work, attended=work.tokens, cold_rows=cold, cold_requests=requests, read_rows=cold)

    def foretell(self, at: Machine, work: LayerStep, layer: int) -> Steps:
        if self.ahead and self._here(at) and self._chosen(work, layer):
            yield from self._choose(at, work, layer)

    def _choose(self, at: Machine, work: LayerStep, layer: int) -> Steps:
        """Look through the index, find the rows, and ask for those that are cold."""
        way = self._way(at)
        yield at.overhead("select", way.layer * at.sequences + way.token * work.tokens + way.row * work.attended)
        yield from ask(at, work.cold_rows, work.cold_requests)
        at.arriving[layer] = at.start(at.read(work.asked_rows, work.cold_requests))
