"""This machine as a box: measurements in turns, and the figures that follow from them."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from transformers import PreTrainedModel

from hillinfer.bench.timing import Contender, in_turns
from hillinfer.calibration.fingerprint import fingerprint, usable_cores
from hillinfer.config import StoreSettings
from hillinfer.integrations.transformers import geometry_of
from hillinfer.policies import H2O, HillInfer, InfiniGen, LeoAM, Quest, StreamingLLM
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.measuring.drive import DriveProbe
from hillinfer.simulation.measuring.engine import PARTS, EngineProbe
from hillinfer.simulation.measuring.kept import BUDGET, KeptProbe
from hillinfer.simulation.measuring.memory import MemoryProbe
from hillinfer.simulation.measuring.model import ModelProbe
from hillinfer.simulation.measuring.number import measured
from hillinfer.simulation.measuring.probe import Probe
from hillinfer.simulation.measuring.stock import StockProbe
from hillinfer.simulation.measuring.ways import Bare, indexed_way, kept_way, whole_way

SHORT, LONG = 256, 6144
_STOCK = 64, 3072
_COLD = 1536
CONTEXTS = frozenset({SHORT, LONG, *_STOCK, _COLD})
"""Tokens of the random contexts; the model is held against no length of them."""
_FEW, _MANY = 0.05, 0.2
ALL, ALL_AND_INDEX = "103%", "120%"
"""Hot pools with room for all that is cached, and for an index too; what is validated has the same."""
INDEXED: Sequence[type[Quest | LeoAM | InfiniGen]] = (Quest, LeoAM, InfiniGen)
"""Policies with an index whose steps are measured."""

_P = TypeVar("_P", bound=Probe)


class Probes:
    """All measurements of a machine with a model.

    Take ``contenders`` through ``in_turns``, then ask for ``hardware``.
    """

    def __init__(self, model: PreTrainedModel, cold_dir: Path | None, on_progress: Callable[[str], None]) -> None:
        self._store = StoreSettings(cold_dir=cold_dir)
        self._geometry = geometry_of(model, model.config.get_text_config().num_hidden_layers)
        self._opened: list[Probe] = []
        on_progress("preparing the measurements")
        try:
            self.model = self._open(ModelProbe(model))
            self.stock = [self._open(StockProbe(model, tokens)) for tokens in _STOCK]

            def engine(policy: Any, tokens: int, hot: str = ALL, lookahead: int = 0) -> EngineProbe:
                return self._open(EngineProbe(model, policy, tokens, hot, cold_dir, lookahead=lookahead))

            both = (SHORT, LONG)
            self.short, self.long = (engine(HillInfer(alpha=0.1), tokens) for tokens in both)
            sizes = (LONG, _FEW), (LONG, _MANY), (_COLD, _MANY)
            self.cold = [engine(HillInfer(alpha=alpha), tokens, "20%") for tokens, alpha in sizes]
            self.guess = [engine(HillInfer(alpha=0.1), tokens, lookahead=1) for tokens in both]
            self.whole = [engine(HillInfer(alpha=1.0), tokens) for tokens in both]
            self.indexed = {
                policy.name: [engine(policy(budget=BUDGET), tokens, ALL_AND_INDEX) for tokens in both]
                for policy in INDEXED
            }
            self.kept = [self._open(KeptProbe(model, StreamingLLM(budget=BUDGET), tokens)) for tokens in both]
            self.weighed = [self._open(KeptProbe(model, H2O(budget=BUDGET), tokens)) for tokens in both]
            self.drive = self._open(DriveProbe(replace(self._geometry, layers=1), cold_dir))
            self.memory = self._open(MemoryProbe(self._geometry.row_bytes, usable_cores()))
        except BaseException:
            self.close()
            raise

    def _open(self, probe: _P) -> _P:
        self._opened.append(probe)
        return probe

    @property
    def contenders(self) -> Sequence[Contender]:
        """What is to be taken in turns."""
        return self._opened

    def close(self) -> None:
        """Free what they hold."""
        for probe in self._opened:
            probe.close()
        self._opened = []

    def hardware(self) -> Hardware:
        """What was measured, as a box named "here"."""
        self.drive.write()
        where = fingerprint(self._store, self._geometry, torch.device("cpu"))
        return Hardware.model_validate(
            {
                "name": "here",
                "about": f"{where.processor}, {where.drive}, {platform.system()} {where.kernel}",
                "cpu": {"cores": measured(where.cores, "processors this process may use")} | self._cpu(),
                "dram": {
                    "capacity": measured(where.memory_bytes, "the system's count"),
                    "bandwidth": measured(
                        max(self.memory.bandwidth, self.model.linear_rate), "all cores read 256 MiB, or weights"
                    ),
                },
                "ssd": self._drive(),
                "software": self._model()
                | self._engine()
                | self._cold()
                | self._stock()
                | self._kept()
                | self._others(),
            }
        )

    def _per(self, name: str, count: float) -> float:
        """Seconds that one more of something adds to a part of a step of the engine."""
        return max(1e-12, (self.long.median(name) - self.short.median(name)) / count)

    @property
    def _slopes(self) -> tuple[float, float, float, float]:
        """Seconds per cached token of scoring, selection and ageing; per attended row of attention."""
        short, long, layers = self.short, self.long, self._geometry.layers
        tokens = (long.tokens - short.tokens) * layers
        rows = (long.attended - short.attended) * layers
        evaluate, select, place = (self._per(name, tokens) for name in ("evaluate", "select", "place"))
        return evaluate, select, place, self._per("attend", rows)

    def _untold(self, probe: EngineProbe) -> float:
        """Seconds of a layer of a step that are neither the model's nor one of the parts."""
        told = sum(map(probe.median, PARTS))
        return (probe.median("step") - self.model.median("floor") - told) / self._geometry.layers

    def _cpu(self) -> dict[str, Any]:
        evaluate, select, _, attend = self._slopes
        how = f"parts of steps at {self.short.tokens} and {self.long.tokens} random tokens"
        return {
            "score": measured(self._geometry.score_key_bytes / evaluate, how),
            "attend": measured(self._geometry.row_bytes / attend, how),
            "gather": measured(self.memory.gather, "rows apart, by index_select"),
            "linear": measured(self.model.linear_rate, "every product of the model's weights with one row"),
            "select": measured(1 / select, how),
        }

    def _drive(self) -> dict[str, Any]:
        drive = self.drive
        return {
            "capacity": measured(drive.capacity, "the file system's count"),
            "read": measured(drive.read_rate, "4 MiB of neighbours, by the reader of a step"),
            "write": measured(drive.write_rate, "a write that was waited for"),
            "iops": measured(drive.iops, "128 rows apart, by the reader of a step"),
            "latency": measured(drive.latency, "one row, by the reader of a step"),
            "request": measured(drive.request, "128 rows apart, less what as many bytes of neighbours take"),
        }

    def _model(self) -> dict[str, Any]:
        return {
            "model_layer": measured(self.model.per_layer, "a step without attention, less its products"),
            "model_step": measured(self.model.per_step, "a step without layers, less its product"),
        }

    def _engine(self) -> dict[str, Any]:
        """What is left of a step at a short context when what grows with it is taken away."""
        short, (evaluate, select, place, attend) = self.short, self._slopes
        whole = (short.median("step") - self.model.median("floor")) / self._geometry.layers
        rest = whole - short.tokens * (evaluate + select + place) - short.attended * attend
        return {
            "engine_layer": measured(rest, f"a step at {short.tokens} tokens, less the model's and what grows"),
            "settle_token": measured(place, f"parts of steps at {short.tokens} and {self.long.tokens} random tokens"),
        }

    def _cold(self) -> dict[str, Any]:
        few, many, short = self.cold
        layers, place = self._geometry.layers, self._slopes[2]
        hot = self.short.median("place") / layers - place * self.short.tokens  # of what engine_layer has already
        rows = max(1.0, many.median("cold") - few.median("cold"))
        row = max(0.0, (many.median("place") - few.median("place")) / rows)

        def fixed(probe: EngineProbe) -> float:
            """Seconds behind a layer, what rows and ageing take not counted."""
            return (probe.median("place") - row * probe.median("cold")) / layers - place * probe.tokens

        pool = max(0.0, (fixed(many) - fixed(short)) / (many.tokens - short.tokens))
        asking = max(self.drive.median("ask"), self._untold(short) - self._untold(self.short))
        how = f"parts of steps at {_COLD} and {LONG} random tokens, a fifth of them hot"
        return {
            "settle_layer": measured(fixed(short) - pool * short.tokens - hot, how),
            "settle_pool": measured(pool, how),
            "settle_row": measured(row, how),
            "read_layer": measured(asking, how),
            "read_row": measured(self.drive.row, "to be told of 128 rows that are there"),
        }

    def _stock(self) -> dict[str, Any]:
        (near, far), geometry = self.stock, self._geometry
        tokens = (far.tokens - near.tokens) * geometry.layers
        append, attend = (max(1e-12, (far.median(name) - near.median(name)) / tokens) for name in ("append", "attend"))
        whole = (near.median("step") - self.model.median("floor")) / geometry.layers
        how = f"parts of steps at {near.tokens} and {far.tokens} random tokens"
        return {
            "stock_layer": measured(
                whole - near.tokens * (append + attend), f"a step at {near.tokens} tokens, less the model's"
            ),
            "stock_append": measured(geometry.row_bytes / append, how),
            "stock_attend": measured(geometry.row_bytes / attend, how),
        }

    def _kept(self) -> dict[str, Any]:
        return {f"kept_{name}": value for name, value in kept_way(self.kept, self._bare).items()}

    @property
    def _bare(self) -> Bare:
        return Bare(self.model.median("floor"), self._geometry.layers, self._geometry.row_bytes)

    def _others(self) -> dict[str, Any]:
        """Other policies than HillInfer, and its lookahead."""
        whole, place = whole_way(self.whole, self._bare), self._slopes[2]
        ways = {H2O.name: kept_way(self.weighed, self._bare)}
        for name, probes in self.indexed.items():
            way = indexed_way(probes, self._bare, whole, place)
            if way is not None:
                ways[name] = way
        near, far = self.guess
        guessed = max(1, self._geometry.layers - 1)
        token = max(0.0, far.median("look ahead") - near.median("look ahead")) / guessed / (far.tokens - near.tokens)
        layer = (near.median("step") - self.short.median("step")) / guessed - near.tokens * token
        how = f"steps at {near.tokens} and {far.tokens} random tokens with lookahead and without"
        return {
            "whole": whole,
            "guess_layer": measured(layer, how),
            "guess_token": measured(token, how),
            "ways": ways,
        }


def measure(
    model: PreTrainedModel, cold_dir: Path | None, *, rounds: int = 4, on_progress: Callable[[str], None] = print
) -> Hardware:
    """Measure this machine with a model that computes on its processor."""
    probes = Probes(model, cold_dir, on_progress)
    try:
        in_turns(probes.contenders, rounds=rounds, block=Probe.block, on_progress=on_progress)
        return probes.hardware()
    finally:
        probes.close()
