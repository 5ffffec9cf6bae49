"""The timing model beside the clock: decode steps of a real model, measured and simulated, setting by setting."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from transformers import DynamicCache, PreTrainedModel

from hillinfer.bench.steps import Decoding
from hillinfer.bench.timing import in_turns, median_ms
from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import MemoryBudgetError
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.measuring.here import Probes
from hillinfer.simulation.recorded_run import stock_trace
from hillinfer.simulation.recording import Recording
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import Shape
from hillinfer.simulation.trace import Trace
from hillinfer.simulation.validation_settings import DROPPING, Setting

KIND, VERSION = "hillinfer-simulate", 1
CHUNK = 512
"""Contexts are a multiple of it."""
LIMIT = 0.2
"""How far a simulated step may be from the measured one."""
_BLOCK, _RECORDED = 8, 8


@dataclass(frozen=True)
class Row:
    """A setting's outcome. error: (simulated − measured) / measured; busy: shares of the simulated time."""

    policy: str
    context: int
    hot_share: float
    measured_ms: float
    simulated_ms: float
    error: float
    busy: dict[str, float]


@dataclass(frozen=True)
class LeftOut:
    """A setting that cannot be had here, and why."""

    policy: str
    context: int
    hot_share: float
    why: str


class Validation(NamedTuple):
    """What came of it."""

    rows: list[Row]
    hardware: Hardware
    left_out: list[LeftOut]


@dataclass
class Measured:
    """A setting's seconds per step, and what its steps did."""

    setting: Setting
    seconds: Sequence[float]
    trace: Trace


def decoded(rounds: int) -> int:
    """Tokens that every setting decodes: some before each block that are not timed, and those that are recorded."""
    return rounds * (_BLOCK + 1) + _RECORDED


def validate(
    model: PreTrainedModel,
    ids: torch.Tensor,
    shape: Shape,
    settings: Sequence[Setting],
    cold_dir: Path | None,
    *,
    rounds: int = 3,
    on_progress: Callable[[str], None] = print,
) -> Validation:
    """Measure all settings and the machine itself, in turns, and simulate the same steps with the machine's figures.

    ids   int64 [n]: a text, longer than the longest context by the steps that are decoded
    """
    probes = Probes(model, cold_dir, on_progress)
    measured: list[Measured] = []
    left_out: list[LeftOut] = []
    try:
        longest = max(setting.context for setting in settings)
        prompt = PromptRecord(
            model,
            ids[None, :longest],
            CHUNK,
            on_progress=lambda done, of: on_progress(f"reading token {done} of {of}"),
        )
        try:
            for context in sorted({setting.context for setting in settings}):
                here = [setting for setting in settings if setting.context == context]
                measured += _measure(model, ids, prompt, here, probes, cold_dir, rounds, left_out, on_progress)
        finally:
            prompt.close()
        hardware = probes.hardware()
    finally:
        probes.close()
    return Validation([_row(hardware, shape, each) for each in measured], hardware, left_out)


def _measure(
    model: PreTrainedModel,
    ids: torch.Tensor,
    prompt: PromptRecord,
    settings: Sequence[Setting],
    probes: Probes,
    cold_dir: Path | None,
    rounds: int,
    left_out: list[LeftOut],
    on_progress: Callable[[str], None],
) -> list[Measured]:
    """The settings of one context, their steps in turns with the machine's measurements."""
    context = settings[0].context
    with contextlib.ExitStack() as opened:
        decodings, opened_settings = [], []
        for setting in settings:
            on_progress(f"{context} tokens: filling {setting.policy}")
            try:
                cache = _open(model, setting, cold_dir, opened, decoded(rounds))
            except MemoryBudgetError as error:  # a pool too small for an index and what a step attends to
                left_out.append(LeftOut(setting.policy, context, setting.hot_share, str(error)))
                continue
            opened_settings.append(setting)
            prompt.replay(cache, context)
            name = NAME if isinstance(cache, HillInferCache) else "sdpa"
            decodings.append(Decoding(setting.policy, model, cache, name, ids[context:]))
        times = in_turns(
            [*decodings, *probes.contenders],
            rounds=rounds,
            block=_BLOCK,
            on_progress=lambda doing: on_progress(f"{context} tokens, {doing}"),
        )
        return [
            Measured(setting, seconds, _record(decoding, shape_layers=len(prompt.cache.layers)))
            for setting, decoding, seconds in zip(opened_settings, decodings, times, strict=False)
        ]


def _open(
    model: PreTrainedModel, setting: Setting, cold_dir: Path | None, opened: contextlib.ExitStack, steps: int
) -> Any:
    if setting.method == "full-device":
        return DynamicCache(config=model.config)
    if setting.method in DROPPING:
        return opened.enter_context(HillInferCache(model, setting.opened()))
    store = StoreSettings(hot_bytes=Budget.parse(setting.hot), cold_dir=cold_dir, lookahead=setting.lookahead)
    cache = opened.enter_context(HillInferCache(model, setting.opened(), store=store))
    cache.expect(setting.context + steps)
    return cache


def _record(decoding: Decoding, shape_layers: int) -> Trace:
    """What the steps did that follow those measured: looking on takes time, so it is not done before."""
    cache = decoding.cache
    if not isinstance(cache, HillInferCache):
        return stock_trace("", shape_layers, cache.get_seq_length(), _RECORDED)
    recording = Recording(cache.engine(1), positions=False)
    decoding.prepare()
    for _ in range(_RECORDED):
        decoding.step()
    recording.close()
    return recording.trace("")


def _row(hardware: Hardware, shape: Shape, measured: Measured) -> Row:
    setting = measured.setting
    simulated = simulate(hardware, shape, setting.simulated(), measured.trace)
    ours, theirs = simulated.median_step * 1e3, median_ms(measured.seconds)
    return Row(
        setting.policy, setting.context, setting.hot_share, theirs, ours, ours / theirs - 1, simulated.busy_shares
    )


def as_dict(found: Validation, told: dict[str, Any]) -> dict[str, Any]:
    """Rows and summary, ready for JSON."""
    rows, hardware, left_out = found
    errors = [abs(row.error) for row in rows]
    return {
        "kind": KIND,
        "version": VERSION,
        **told,
        "hardware": hardware.model_dump(),
        "rows": [asdict(row) for row in rows],
        "left_out": [asdict(each) for each in left_out],
        "summary": {
            "settings": len(rows),
            "max_error": max(errors),
            "mean_error": statistics.mean(errors),
            "within_20_percent": sum(error <= LIMIT for error in errors),
        },
    }
