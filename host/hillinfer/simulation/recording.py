"""Recording what an engine really selects, and where that lies: the timing model's work, and what pictures show.

Recording looks on and changes nothing: the tokens are the same with it. It costs nothing where nobody asks for it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hillinfer.csd.contract import Stream
from hillinfer.errors import SettingError
from hillinfer.kv.geometry import TILE
from hillinfer.pipeline.chosen import Chosen
from hillinfer.pipeline.contract import Engine
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.policies.base import SelectingPolicy
from hillinfer.simulation.requests import asked
from hillinfer.simulation.trace import LayerStep, Positions, Trace
from hillinfer.simulation.trace_file import load, save
from hillinfer.store.staging import StagedRead

__all__ = ["Recording", "load", "save"]

_Places = tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], int]
"""Selected; hot; tiles that the host scores; first pinned."""


class Recording:
    """Told by an engine what its decode steps do, from now on until ``close``.

    positions   also remember which tokens; for a batch of one
    """

    def __init__(self, engine: Engine, *, positions: bool = True) -> None:
        self._engine = engine
        self._works: defaultdict[Stream, list[LayerStep]] = defaultdict(list)
        self._places: defaultdict[Stream, list[_Places]] = defaultdict(list)
        self._positions = positions and engine.sequences == 1
        self._ahead: dict[Stream, int] = {}  # rows that are read ahead for a stream's coming step
        self._seen = engine.ledger.ahead_rows
        if isinstance(engine, TieredEngine):
            engine.recorder = self
        else:
            engine.witness = self._witness

    def close(self) -> None:
        """The engine tells no more."""
        if isinstance(self._engine, TieredEngine):
            self._engine.settled_ledger()  # what is behind the last step belongs to it
            self._engine.recorder = None
        else:
            self._engine.witness = None

    # ---- told by the engine

    def chose(self, stream: Any, chosen: Chosen | None) -> None:
        """A step of a tiered engine."""
        tokens, stored, engine = stream.length, stream.stored, self._engine
        hot = np.ones(tokens, bool)
        hot[:stored] = stream.hot_pool.slot_of[:stored] >= 0
        sets = [np.arange(tokens)] if chosen is None else chosen.by_head()
        selected = sets[0] if len(sets) == 1 else np.unique(np.concatenate(sets))
        below = selected[: int(np.searchsorted(selected, stored))]
        cold = below[~hot[below]]
        reading = None if chosen is None else chosen.reading
        if reading is not None and reading.requests:
            requests, read = reading.requests, -(-reading.nbytes // engine.geometry.row_bytes)
        else:  # a read of everything comes piece by piece, one that was begun ahead in two parts: neither says
            requests, read = asked(cold, engine.geometry.row_bytes)
        hits = reading.hits if isinstance(reading, StagedRead) else 0
        ahead = self._ahead.pop(stream.id, 0)
        missed, gaps = (len(cold) - hits) / max(1, len(cold)), read / max(1, len(cold))
        early = round(ahead * requests / len(cold)) if len(cold) else ahead
        self._look_ahead(stream.id)
        theirs = np.zeros(-(-tokens // TILE), bool)
        if chosen is not None and isinstance(engine.policy, SelectingPolicy):
            for run in stream.device_runs():
                theirs[run.first // TILE : (run.first + run.tokens) // TILE] = True
            device, host = int(theirs.sum()) * TILE, tokens - int(theirs.sum()) * TILE
        else:
            device = host = 0
        self._works[stream.id].append(
            LayerStep(
                tokens,
                host_scored=host,
                device_scored=device,
                attended=len(selected),
                hot_rows=len(below) - len(cold),
                cold_rows=len(cold),
                cold_requests=min(len(cold) - hits, -int(-requests * missed // 1)),
                read_rows=max(len(cold) - hits, round(read * missed)),
                written_rows=TILE if stream.device_tier.full else 0,
                head_rows=0 if len(sets) == 1 else round(sum(map(len, sets)) / len(sets)),
                ahead_rows=round(ahead * gaps) if len(cold) else ahead,
                ahead_requests=early,
                ahead_hits=hits,
            )
        )
        if self._positions:
            attended = getattr(engine.policy, "attended", None)
            pinned = tokens - attended(tokens) if attended is not None else tokens
            self._places[stream.id].append((selected, hot, ~theirs, pinned))

    def _look_ahead(self, stream: Stream) -> None:
        """What was read ahead since the last layer's step is for the next layer (``integrations/predict.py``)."""
        ahead = self._engine.ledger.ahead_rows
        if ahead > self._seen:
            self._ahead[Stream(stream.layer + 1, stream.sequence)] = ahead - self._seen
            self._seen = ahead

    def settled(self, stream: Stream, moved: int) -> None:
        """Behind a step of a tiered engine."""
        works = self._works[stream]
        if works:  # the step before the first that was recorded is none of ours
            works[-1] = replace(works[-1], moved_rows=moved)

    def _witness(self, layer: int, sequence: int, sets: list[npt.NDArray[np.int64]]) -> None:
        """A step of any other engine: what it kept is where it is computed."""
        selected = np.unique(np.concatenate(sets))
        works = self._works[Stream(layer, sequence)]
        tokens = int(selected[-1]) + 1 if len(selected) else 0
        works.append(LayerStep(tokens, attended=max(map(len, sets))))
        if self._positions:
            kept = np.zeros(tokens, bool)
            kept[selected] = True
            self._places[Stream(layer, sequence)].append((selected, kept, np.ones(-(-tokens // TILE), bool), tokens))

    # ---- what comes of it

    def trace(self, model: str, **settings: Any) -> Trace:
        """All steps so far; SettingError before the first."""
        engine = self._engine
        steps = min((len(works) for works in self._works.values()), default=0)
        if not steps:
            raise SettingError("nothing was decoded while recording: decode at least one token")
        layers, batch = engine.geometry.layers, engine.sequences
        works = [
            [_sum([self._works[Stream(layer, each)][step] for each in range(batch)]) for layer in range(layers)]
            for step in range(steps)
        ]
        positions = None
        if self._positions:
            places = [[self._places[Stream(layer, 0)][step] for layer in range(layers)] for step in range(steps)]
            columns = ([[place[column] for place in step] for step in places] for column in range(4))
            positions = Positions(*columns)  # type: ignore[arg-type]
        return Trace(model, engine.policy.name, works, batch, settings, positions)


def _sum(works: list[LayerStep]) -> LayerStep:
    """The sequences of a batch together."""
    fields = LayerStep.__dataclass_fields__
    return LayerStep(**{name: sum(getattr(work, name) for work in works) for name in fields})
