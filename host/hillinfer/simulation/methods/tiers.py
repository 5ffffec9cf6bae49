"""Steps of this project's engine on a box whose processor computes: what all policies with tiers have in common.

One thread does everything; the drive works beside it. What is behind earlier steps is done while rows are waited for.
"""

from __future__ import annotations

from collections.abc import Sequence

import simpy

from hillinfer.kv.geometry import TILE
from hillinfer.simulation.hardware.box import WHOLE, Software
from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.trace import LayerStep

_PIECE = 4 << 20  # bytes of rows that exact attention brings together at a time (store/token_stream.py)


def ask(at: Machine, rows: float, requests: float) -> Steps:
    """Ask for rows of the cold pool; what is waited for then is ``at.start(at.read(…))``."""
    software = at.hardware.software
    if software is not None and rows > 0 and requests > 0:
        yield at.overhead("ask for rows", software.read_layer)


def attend_found(
    at: Machine, work: LayerStep, coming: Sequence[simpy.Event], *, share: float = 1.0, rate: float | None = None
) -> Steps:
    """Attend to what is in memory, wait for the cold rows that are ``coming``, and attend to those.

    share   of the rows that a KV head attends to; rate: bytes of rows per second, if not HillInfer's
    """
    software = at.hardware.software
    near = work.attended - work.cold_rows
    yield at.attend(share * near + at.sequences, rate=rate)
    if not coming:
        return
    yield from at.catch_up()
    checking = 0.0 if software is None else work.cold_rows * software.read_row
    yield at.together(*coming, at.overhead("check rows", checking))
    yield at.attend(share * work.cold_rows, "attend cold", rate)


def attend_whole(at: Machine, work: LayerStep, software: Software) -> Steps:
    """Attend to everything, a piece being read while another is attended."""
    way = software.way(WHOLE)
    yield at.overhead("engine", way.layer * at.sequences)
    rows = max(TILE, int(_PIECE / at.shape.row_bytes) // TILE * TILE)
    pieces = -(-work.tokens // (rows * at.sequences)) * at.sequences
    each, cold = work.tokens / pieces, work.cold_rows / pieces

    def begin() -> Steps:
        yield from ask(at, cold, work.cold_requests)
        coming.append(at.start(at.read(work.asked_rows / pieces, work.cold_requests / pieces)))

    coming: list[simpy.Event] = []
    if cold:
        yield from begin()
    for piece in range(pieces):
        if cold:
            if piece + 1 < pieces:
                yield from begin()
            yield at.together(coming.pop(0), at.overhead("check rows", cold * software.read_row))
        yield at.attend(each, rate=way.attend)


def settle(at: Machine, work: LayerStep) -> Steps:
    """Behind the step: the hit-rate table, and who changes places."""
    software = at.hardware.software
    assert software is not None
    seconds = work.tokens * software.settle_token
    if work.cold_rows:
        seconds += software.settle_layer + work.tokens * software.settle_pool + work.cold_rows * software.settle_row
    yield at.overhead("settle", seconds)
