"""HillInfer (arXiv 2602.18750): scored where the keys lie, placed by history, one layer ahead of the GPU."""

from __future__ import annotations

from dataclasses import dataclass

import simpy

from hillinfer.errors import SettingError
from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.methods.tiers import ask, attend_found, attend_whole, settle
from hillinfer.simulation.trace import LayerStep


@dataclass(frozen=True)
class HillInfer(Method):
    """Host and storage device score at once; what is selected comes from DRAM and from the drive.

    key_bytes   per element of a key, as it is scanned: 1 for INT8, 2 for the FP16 keys themselves
    streamed    the device reads its keys from its drive for every query; else they lie in its memory
    host_share  of the tokens that the host scores; None: as recorded
    global_set  selection waits for all scores; else each side selects among its own, as the balance of the paper's
                formula has it (algorithms.md §1, APP)
    two_hop     cold rows pass through host memory to the GPU; else they go there straight, as fast as the drive
    hkm         placement by history. Without it rows that move stand in the step's way: those that were not read to be
                attended are read, and as many are written back as come (``moved_rows``)
    lookahead   as the engine's setting, without a GPU: a guessed query says what is read while the layer before works
    ahead       the paper's APP: the next layer is evaluated, and its rows are brought, while a layer computes
    """

    key_bytes: float = 1.0
    streamed: bool = False
    host_share: float | None = None
    global_set: bool = True
    two_hop: bool = True
    hkm: bool = True
    ahead: bool = True
    hot_share: float = 0.2
    lookahead: bool = False

    def __post_init__(self) -> None:
        if self.key_bytes <= 0 or not 0 <= self.hot_share <= 1 or not 0 <= (self.host_share or 0) <= 1:
            raise SettingError("key_bytes is above 0, and hot_share and host_share lie between 0 and 1")

    def check(self, at: Machine, tokens: int) -> None:
        nbytes = tokens * at.shape.token_bytes
        copy = nbytes / 2 * self.key_bytes / at.shape.kv_bytes
        card, share = at.hardware.smartssd, self.host_share or 0
        ours = copy if card is None else 0 if self.streamed else copy * share  # streamed: the rows' own keys
        at.check(in_dram=nbytes * self.hot_share + ours, on_drive=nbytes)
        theirs = copy * (1 - share)
        if card is not None and not self.streamed and theirs > card.memory * card.cards:
            raise SettingError(
                f"{theirs / 1e9:.1f} GB of keys do not fit into the memory of {card.cards:g} SmartSSD: stream them, or "
                "scan a smaller copy (key_bytes)"
            )

    def _scored(self, work: LayerStep) -> tuple[float, float]:
        """Tokens that host and device score."""
        if self.host_share is None:
            return work.host_scored, work.device_scored
        return work.scored * self.host_share, work.scored * (1 - self.host_share)

    # ---- with a GPU: both paths at once

    def bring(self, at: Machine, work: LayerStep, layer: int) -> Steps:  # noqa: ARG002
        if not at.on_gpu:
            return
        ours, theirs = self._scored(work)
        if at.hardware.smartssd is None:
            ours, theirs = ours + theirs, 0.0
        if self.global_set:
            yield at.together(at.start(self._host(at, ours, 0)), at.start(self._device(at, theirs, work, fetch=False)))
            yield at.select(work.scored)
            yield at.together(at.start(at.copy(work.hot_rows)), at.start(self._fetch(at, work)))
        else:
            hot = at.start(self._host(at, ours, work.hot_rows))
            yield at.together(hot, at.start(self._device(at, theirs, work, fetch=True)))
        if not self.hkm:
            unread = max(0, work.moved_rows - work.cold_rows)  # what is attended was read for that
            yield at.together(at.start(at.read(unread, unread, name="move")), self._back(at, work))
        if work.written_rows:
            at.write(work.written_rows, name="append")

    def _host(self, at: Machine, tokens: float, rows: float) -> Steps:
        if tokens:
            yield at.score(tokens * at.shape.key_elements * self.key_bytes)
        yield from at.copy(rows)

    def _device(self, at: Machine, tokens: float, work: LayerStep, *, fetch: bool) -> Steps:
        if tokens:
            nbytes = tokens * at.shape.key_elements * self.key_bytes
            yield from at.device_score(tokens, nbytes, streamed=self.streamed)
        if fetch:
            yield from self._fetch(at, work)

    def _fetch(self, at: Machine, work: LayerStep) -> Steps:
        yield from at.read(work.asked_rows, work.cold_requests)
        if self.two_hop:
            yield from at.copy(work.cold_rows, gather=False)

    def _back(self, at: Machine, work: LayerStep) -> simpy.Event:
        return at.write(work.moved_rows, name="move back")

    # ---- without: one thread does all, the device's part too

    def foretell(self, at: Machine, work: LayerStep, layer: int) -> Steps:
        software = at.hardware.software
        if at.on_gpu or software is None or not self.lookahead or not work.scored:
            return
        yield at.overhead("look ahead", (software.guess_layer + work.tokens * software.guess_token) * at.sequences)
        if work.ahead_rows:
            yield from ask(at, work.ahead_rows, work.ahead_requests)
            at.arriving[layer] = at.start(at.read(work.ahead_rows, work.ahead_requests, name="read ahead"))

    def attend(self, at: Machine, work: LayerStep, layer: int) -> Steps:
        if work.ahead_hits and (at.on_gpu or not self.lookahead):
            raise SettingError("this trace was recorded with lookahead, and is timed without: record it without")
        if at.on_gpu:
            yield at.attend(work.attended + at.sequences)
            return
        software = at.hardware.software
        if software is not None and work.attended >= work.tokens and not work.scored:
            yield from attend_whole(at, work, software)
            return
        if software is not None:
            yield at.overhead("engine", software.engine_layer * at.sequences)
        if work.scored:
            yield at.score(work.scored * at.shape.key_elements * self.key_bytes)
            yield at.select(work.scored)
        early = at.arriving.pop(layer, None)
        coming = [] if early is None or not work.ahead_hits else [early]
        if work.cold_rows > work.ahead_hits:
            yield from ask(at, work.asked_rows, work.cold_requests)
            coming.append(at.start(at.read(work.asked_rows, work.cold_requests)))
        yield from attend_found(at, work, coming)
        if software is not None:
            at.behind.append(lambda: settle(at, work))
