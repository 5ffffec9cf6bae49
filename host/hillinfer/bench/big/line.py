"""One shape, context and batch: every method's steps in turns, on one store, within one DRAM budget."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from hillinfer.bench.arranging import Arrangement, Shape
from hillinfer.bench.big import methods
from hillinfer.bench.big.decoding import KvDecoding, Reading
from hillinfer.bench.big.equal_mass import match
from hillinfer.bench.big.methods import Method
from hillinfer.bench.big.workload import Workload
from hillinfer.bench.timing import in_turns, median_ms, p95_ms
from hillinfer.errors import HillInferError
from hillinfer.pipeline.contract import Engine
from hillinfer.policies.indexing import IndexingPolicy
from hillinfer.store.ledger import Ledger

_PROBED = 4  # steps by which the budget of equal mass is found
_REPLAYED = 24  # steps whose reads are made again


@dataclass(frozen=True)
class Line:
    """What is measured. layers: of the shape's own, measured; context in tokens, the decoded steps apart."""

    shape: Shape
    context: int
    sequences: int
    layers: int


@dataclass(frozen=True)
class Effort:
    """How long it takes, and the settings that are common.

    rounds, block   as in ``timing.in_turns``
    dram            budget of each method, of the KV
    alpha, copy     of HillInfer: share of the tokens, and scoring copy
    """

    rounds: int = 7
    block: int = 8
    dram: float = 0.25
    alpha: float = 0.1
    copy: str = "projected/4"

    @property
    def steps(self) -> int:
        """Tokens decoded after each prompt, at most."""
        return _PROBED + self.rounds * (self.block + 1)


@dataclass
class BigRow:
    """One method.

    budget          share of the cached tokens attended
    layer_ms        a token's attention in one layer, all sequences of the batch together: median; p95_layer_ms
    model_ms        the same, times the layers of the model, per token of one sequence
    reads_ms        of layer_ms, what reading the same rows takes with nothing else: median
    captured        share of the attention that falls on what is attended; mean over heads, layers and steps
    dram_share      of the whole KV: most that the pool (or the index) held, and the scoring copy where it is counted
    copy            the scoring copy, copy_in_dram: whether it is counted there
    *_bytes         per token and layer, all sequences: read from the cold pool, attended elsewhere, scored
    """

    shape: str
    context: int
    sequences: int
    layers: int
    method: str
    equal: str
    budget: float
    copy: str = ""
    copy_in_dram: bool = False
    layer_ms: float | None = None
    p95_layer_ms: float | None = None
    model_ms: float | None = None
    reads_ms: float | None = None
    captured: float | None = None
    hot_hit_rate: float | None = None
    moved_fraction: float | None = None
    dram_share: float | None = None
    cold_read_bytes: float | None = None
    hot_attended_bytes: float | None = None
    scored_bytes: float | None = None
    note: str = ""


class LineBench:
    """Measures one line."""

    def __init__(
        self,
        line: Line,
        effort: Effort,
        arrangement: Arrangement,
        cold_dir: Path | None,
        on_progress: Callable[[str], None],
    ) -> None:
        self._line, self._effort, self._cold_dir = line, effort, cold_dir
        where = f"{line.shape.name}, {line.context:,} tokens, batch {line.sequences}"
        self._say: Callable[[str], None] = lambda doing: on_progress(f"{where}: {doing}")
        self.workload = Workload(
            arrangement,
            line.shape,
            layers=line.layers,
            sequences=line.sequences,
            context=line.context,
            steps=effort.steps,
        )

    def run(self, own: list[Method], *, equal_alpha: bool = True) -> list[BigRow]:
        """Rows of HillInfer's variants, of full offload, and of every baseline at equal α and at equal mass."""
        rows: list[BigRow] = []
        with contextlib.ExitStack() as opened:
            ours = self._open(own, rows, opened)
            self.workload.fill([each.engine for _, each in ours], self._say)
            target = self._probe(ours)
            others = [methods.full(self._effort.dram), *self._baselines(target, equal_alpha)]
            theirs = self._open(others, rows, opened)
            self.workload.fill([each.engine for _, each in theirs], self._say)
            self._measure([*ours, *theirs])
        return rows

    def _open(
        self, wanted: list[Method], rows: list[BigRow], opened: contextlib.ExitStack
    ) -> list[tuple[BigRow, KvDecoding]]:
        """A row for each, and what there is to run."""
        line, found = self._line, []
        for method in wanted:
            row = BigRow(
                line.shape.name,
                line.context,
                line.sequences,
                line.layers,
                method.name,
                method.equal,
                self._budget(method),
                method.copy,
                method.copy_in_dram,
                note=method.note,
            )
            rows.append(row)
            if method.note:
                continue
            try:
                engine = methods.open_method(method, self.workload, self._cold_dir)
            except HillInferError as error:
                row.note = str(error)
                continue
            opened.callback(engine.close)
            block = 1 if method.name == methods.FULL else None
            found.append((row, KvDecoding(method.label, engine, self.workload, block=block, overlaps=method.overlaps)))
        return found

    def _budget(self, method: Method) -> float:
        attended = getattr(method.policy, "attended", None)
        return 1.0 if attended is None else attended(self.workload.tokens) / self.workload.tokens

    def _probe(self, ours: list[tuple[BigRow, KvDecoding]]) -> float | None:
        """What HillInfer captures, in its first steps; None where it did not run."""
        if not ours:
            return None
        self._say("HillInfer's captured mass")
        for _, decoding in ours:
            for _ in range(_PROBED):
                decoding.step()
        return ours[0][1].mean_captured

    def _baselines(self, target: float | None, equal_alpha: bool) -> list[Method]:
        found = []
        dram, alpha = self._effort.dram, self._effort.alpha
        for name, policy in methods.baselines().items():
            if equal_alpha:
                found.append(self._baseline(name, policy, "alpha", alpha))
            if target is None:
                note = "HillInfer did not run: there is no mass to be equal to"
                found.append(Method(name, policy, dram, equal="mass", note=note))
                continue
            self._say(f"the budget with which {name} captures {target:.3f}")
            found.append(self._baseline(name, policy, "mass", match(policy, self.workload, target, _PROBED).share))
        return found

    def _baseline(self, name: str, policy: IndexingPolicy, equal: str, share: float) -> Method:
        budgeted: IndexingPolicy = replace(policy, budget=f"{share:%}")  # type: ignore[call-arg]  # all have one
        return methods.baseline(name, budgeted, equal, self._effort.dram, self.workload)

    def _measure(self, running: list[tuple[BigRow, KvDecoding]]) -> None:
        contenders = [decoding for _, decoding in running]
        for each in contenders:
            if not each.reads:
                self._say(f"filling the pool of {each.label}")
                each.step()
        before = [_Counts.of(each.engine) for each in contenders]
        done = [len(each.reads) for each in contenders]
        times = in_turns(
            contenders, rounds=self._effort.rounds, block=self._effort.block, warm=1, on_progress=self._say
        )
        after = [_Counts.of(each.engine) for each in contenders]
        reading = [Reading(each, self.workload.geometry.row_bytes) for each in contenders]
        steps = max(1, _REPLAYED // self._effort.rounds)
        for reader, each in zip(reading, contenders, strict=True):
            reader.block = 1 if each.block == 1 else None
        reads = in_turns(reading, rounds=self._effort.rounds, block=steps, warm=1, on_progress=self._say)
        line = self._line
        for (row, each), seconds, alone, start, end, first in zip(
            running, times, reads, before, after, done, strict=True
        ):
            units = (len(each.reads) - first) * line.layers
            row.layer_ms = median_ms(seconds) / line.layers
            row.p95_layer_ms = p95_ms(seconds) / line.layers
            row.model_ms = row.layer_ms * line.shape.layers / line.sequences
            row.reads_ms = median_ms(alone) / line.layers
            row.captured = each.mean_captured
            row_bytes = self.workload.geometry.row_bytes
            read = each.rows_read(first)
            row.cold_read_bytes = read * row_bytes / units
            row.hot_attended_bytes = max(0, each.rows_attended(first) - read) * row_bytes / units
            _note_counts(row, each.engine, start, end, units, self.workload)


@dataclass(frozen=True)
class _Counts:
    """A ledger's counts at one moment."""

    hot: int
    cold: int
    moved: int
    pool: int
    scored: int

    @classmethod
    def of(cls, engine: Engine) -> _Counts:
        ledger: Ledger = engine.settled_ledger()
        return cls(
            ledger.selected_hot,
            ledger.selected_cold,
            ledger.moved_rows,
            ledger.pool_rows,
            ledger.host_scored + ledger.device_scored,
        )


def _note_counts(row: BigRow, engine: Engine, start: _Counts, end: _Counts, units: int, workload: Workload) -> None:
    """``units``: steps times layers."""
    geometry = workload.geometry
    hot, cold = end.hot - start.hot, end.cold - start.cold
    row.hot_hit_rate = hot / (hot + cold) if hot + cold else None
    pool = end.pool - start.pool
    row.moved_fraction = (end.moved - start.moved) / pool if pool else None
    whole = geometry.kv_bytes(workload.tokens, workload.sequences)
    copy = engine.csd.counters.scoring_bytes if engine.csd is not None else 0
    key_bytes = copy / (geometry.layers * workload.sequences * workload.context)
    row.scored_bytes = (end.scored - start.scored) * key_bytes / units
    row.dram_share = (engine.settled_ledger().tiers.hot.peak_bytes + (copy if row.copy_in_dram else 0)) / whole
