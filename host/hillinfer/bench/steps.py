"""What a decode step costs at several lengths of the context: many caches on one model, their steps in turns."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench import preallocated, stock_caches, synthetic, without_attention
from hillinfer.bench.timing import Contender, in_turns, median_ms, p95_ms
from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import HillInferError
from hillinfer.generation import cache_keyword
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import HillInfer

STOCK = "stock DynamicCache"
FLOOR = "the model alone, attention left out"
_ROUNDS, _BLOCK, _WARM = 4, 8, 1
STEPS = _ROUNDS * (_BLOCK + _WARM)
"""Tokens that every cache decodes."""
_ALL = "102%"  # a pool for the whole KV cache, and what is generated after it


@dataclass(frozen=True)
class Case:
    """A way to decode.

    kind    "stock", "offloaded", "preallocated", "hillinfer", "none" (attention left out), or one of
            ``stock_caches.quantised``
    alpha   share of the tokens attended, hot: the DRAM budget, lookahead: layers read ahead; of "hillinfer"
    """

    label: str
    kind: str
    alpha: float = 1.0
    hot: str = _ALL
    lookahead: int = 0


def ours(alpha: float, hot: str = _ALL, lookahead: int = 0) -> Case:
    """HillInfer, with everything in DRAM or a part of it."""
    where = "all in DRAM" if hot == _ALL else f"hot {hot}"
    ahead = ", reads ahead" if lookahead else ""
    return Case(f"hillinfer α={alpha:g}, {where}{ahead}", "hillinfer", alpha, hot, lookahead)


def all_cases(alphas: Sequence[float], alpha: float, hot: str) -> list[Case]:
    """Every way that the benchmark compares; ``alpha`` with a part of the KV in DRAM as well."""
    return [
        Case(STOCK, "stock"),
        Case("preallocated, KV heads not repeated", "preallocated"),
        Case("transformers offloaded cache", "offloaded"),
        Case("transformers quantised cache, quanto INT4", "quanto"),
        Case("transformers quantised cache, HQQ INT4", "hqq"),
        Case("transformers quantised cache, FP8", "fp8"),
        *(ours(each) for each in alphas),
        ours(alpha, hot),
        ours(alpha, hot, lookahead=1),
        Case(FLOOR, "none"),
    ]


def few_cases(alpha: float, hot: str) -> list[Case]:
    """Those whose ratios count: for contexts whose caches are large."""
    return [
        Case(STOCK, "stock"),
        Case("preallocated, KV heads not repeated", "preallocated"),
        ours(alpha),
        ours(alpha, hot),
        ours(alpha, hot, lookahead=1),
        Case(FLOOR, "none"),
    ]


@dataclass
class StepRow:
    """One way to decode at one length of the context.

    ms, p95_ms     of a step; None where it cannot be had here, see ``note``
    ratio          of ms to the stock cache's; added_ratio: of what this context adds to a step at the shortest one
    synthetic      the context is random numbers: no claim of quality
    """

    context: int
    label: str
    synthetic: bool
    ms: float | None = None
    p95_ms: float | None = None
    ratio: float | None = None
    added_ms: float | None = None
    added_ratio: float | None = None
    hot_hit_rate: float | None = None
    moved_fraction: float | None = None
    hot_bytes: int | None = None
    cold_read_bytes_per_token: float | None = None
    note: str = ""


class Decoding(Contender):
    """A cache at work: one token after the other of int64 [n]."""

    def __init__(
        self, label: str, model: PreTrainedModel, cache: Any, implementation: str, tokens: torch.Tensor
    ) -> None:
        self.label, self.cache = label, cache
        self._model, self._implementation = model, implementation
        self._tokens, self._next = tokens, 0
        self._keyword = cache_keyword(model)

    def prepare(self) -> None:
        self._model.set_attn_implementation(self._implementation)

    def step(self) -> None:
        token = self._tokens[self._next % len(self._tokens)]
        self._next += 1
        with torch.inference_mode():
            self._model(token.view(1, 1), **{self._keyword: self.cache})


class StepBench:
    """Measures contexts, the shortest first: what a longer one adds is said against it.

    ids   int64 [n]: a real text, longer than any real context by ``STEPS``
    """

    def __init__(
        self, model: PreTrainedModel, ids: torch.Tensor, cold_dir: Path | None, on_progress: Callable[[str], None]
    ) -> None:
        self._model, self._ids = model, ids
        self._cold_dir, self._on_progress = cold_dir, on_progress
        self.rows: list[StepRow] = []

    def measure(self, context: int, cases: Sequence[Case], *, synthetic_context: bool = False) -> None:
        """Add the rows of one context."""
        rows = [StepRow(context, case.label, synthetic_context) for case in cases]
        with contextlib.ExitStack() as opened:
            record = None
            if not synthetic_context:
                self._on_progress(f"{context} tokens: reading them")
                record = PromptRecord(self._model, self._ids[None, :context])
                opened.callback(record.close)
            tokens = self._ids[context:] if len(self._ids) >= context + STEPS else self._ids
            found: list[tuple[StepRow, Decoding]] = []
            for case, row in zip(cases, rows, strict=True):
                self._on_progress(f"{context} tokens: filling {case.label}")
                cache, implementation = self._open(case, context, opened)
                if isinstance(cache, stock_caches.Unavailable):
                    row.note = cache.why
                    continue
                if case.kind == "none":
                    pass  # there is nothing to fill
                elif record is None:
                    synthetic.lengthen(cache, self._model, context)
                else:
                    record.replay(cache)
                found.append((row, Decoding(case.label, self._model, cache, implementation, tokens)))
            times = in_turns(
                [decoding for _, decoding in found],
                rounds=_ROUNDS,
                block=_BLOCK,
                warm=_WARM,
                on_progress=lambda doing: self._on_progress(f"{context} tokens, {doing}"),
            )
            for (row, decoding), seconds in zip(found, times, strict=True):
                row.ms, row.p95_ms = median_ms(seconds), p95_ms(seconds)
                if isinstance(decoding.cache, HillInferCache):
                    _note_tiers(row, decoding.cache)
        self.rows.extend(rows)
        self._compare(rows)

    def _open(self, case: Case, context: int, opened: contextlib.ExitStack) -> tuple[Any, str]:
        """The case's cache, empty, and the attention function it goes with."""
        if case.kind == "hillinfer":
            store = StoreSettings(hot_bytes=Budget.parse(case.hot), cold_dir=self._cold_dir, lookahead=case.lookahead)
            try:
                cache = opened.enter_context(HillInferCache(self._model, HillInfer(alpha=case.alpha), store=store))
                cache.expect(context + STEPS)
            except HillInferError as error:
                return stock_caches.Unavailable(str(error)), ""
            return cache, NAME
        if case.kind == "preallocated":
            room = context + STEPS
            return preallocated.preallocated_cache(self._model, room), preallocated.ATTENTION
        if case.kind == "none":
            return without_attention.counting_cache(self._model, context), without_attention.ATTENTION
        if case.kind == "stock":
            return stock_caches.dynamic(self._model), "sdpa"
        if case.kind == "offloaded":
            return stock_caches.offloaded(self._model), "sdpa"
        return stock_caches.quantised(self._model, case.kind), "sdpa"

    def _compare(self, rows: list[StepRow]) -> None:
        """Ratios to the stock cache, and to the same way to decode at the shortest context."""
        short = {row.label: row for row in self.rows if row.context == self.rows[0].context}
        stock = rows[0]
        for row in rows:
            start = short.get(row.label)
            if row.ms is None or stock.ms is None:
                continue
            row.ratio = row.ms / stock.ms
            if start is not None and start.ms is not None and row.context > start.context:
                row.added_ms = row.ms - start.ms
                row.added_ratio = row.added_ms / stock.added_ms if stock.added_ms else 1.0


def _note_tiers(row: StepRow, cache: HillInferCache) -> None:
    stats = cache.stats()
    row.hot_hit_rate, row.moved_fraction = stats.hot_hit_rate, stats.moved_fraction
    row.hot_bytes = stats.tiers.hot.bytes
    row.cold_read_bytes_per_token = stats.cold_read_bytes / STEPS
