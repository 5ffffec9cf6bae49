"""The timing model beside the clock: decode steps of a real model, measured and simulated, setting by setting."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import DynamicCache, PreTrainedModel

from hillinfer.bench.steps import Decoding
from hillinfer.bench.timing import in_turns, median_ms
from hillinfer.config import Budget, StoreSettings
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import HillInfer, StreamingLLM
from hillinfer.simulation import methods
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.measuring.here import Probes
from hillinfer.simulation.measuring.kept import BUDGET
from hillinfer.simulation.recorded_run import stock_trace
from hillinfer.simulation.recording import Recording
from hillinfer.simulation.run import simulate
from hillinfer.simulation.shape import Shape
from hillinfer.simulation.trace import Trace

KIND, VERSION = "hillinfer-simulate", 1
CHUNK = 512
"""Contexts are a multiple of it."""
LIMIT = 0.2
"""How far a simulated step may be from the measured one."""
_BLOCK, _RECORDED = 8, 8
_ALL = "103%"


@dataclass(frozen=True)
class Setting:
    """A way to decode.

    method     as the timing model names it: "full-device" for the stock cache, "hillinfer", "streaming-llm"
    alpha      share of the tokens attended, of hillinfer; hot_share: of the KV, in DRAM
    """

    context: int
    method: str
    alpha: float = 1.0
    hot_share: float = 1.0

    @property
    def policy(self) -> str:
        """As a row names it."""
        return {"full-device": "full", "hillinfer": f"hillinfer α={self.alpha:g}"}.get(self.method, self.method)


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


@dataclass
class Measured:
    """A setting's seconds per step, and what its steps did."""

    setting: Setting
    seconds: Sequence[float]
    trace: Trace


def decoded(rounds: int) -> int:
    """Tokens that every setting decodes: some before each block that are not timed, and those that are recorded."""
    return rounds * (_BLOCK + 1) + _RECORDED


def settings_of(contexts: Sequence[int], alphas: Sequence[float], hot_shares: Sequence[float]) -> list[Setting]:
    """At each context the stock cache, what drops four fifths of the tokens, and every combination of hillinfer's."""
    return [
        setting
        for context in contexts
        for setting in [
            Setting(context, "full-device"),
            Setting(context, "streaming-llm"),
            *(Setting(context, "hillinfer", alpha, hot) for alpha in alphas for hot in hot_shares),
        ]
    ]


def validate(
    model: PreTrainedModel,
    ids: torch.Tensor,
    shape: Shape,
    settings: Sequence[Setting],
    cold_dir: Path | None,
    *,
    rounds: int = 3,
    on_progress: Callable[[str], None] = print,
) -> tuple[list[Row], Hardware]:
    """Measure all settings and the machine itself, in turns, and simulate the same steps with the machine's figures.

    ids   int64 [n]: a text, longer than the longest context by the steps that are decoded
    """
    probes = Probes(model, cold_dir, on_progress)
    measured: list[Measured] = []
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
                measured += _measure(model, ids, prompt, here, probes, cold_dir, rounds, on_progress)
        finally:
            prompt.close()
        hardware = probes.hardware()
    finally:
        probes.close()
    return [_row(hardware, shape, each) for each in measured], hardware


def _measure(
    model: PreTrainedModel,
    ids: torch.Tensor,
    prompt: PromptRecord,
    settings: Sequence[Setting],
    probes: Probes,
    cold_dir: Path | None,
    rounds: int,
    on_progress: Callable[[str], None],
) -> list[Measured]:
    """The settings of one context, their steps in turns with the machine's measurements."""
    context = settings[0].context
    with contextlib.ExitStack() as opened:
        decodings = []
        for setting in settings:
            on_progress(f"{context} tokens: filling {setting.policy}")
            cache = _open(model, setting, cold_dir, opened, decoded(rounds))
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
            for setting, decoding, seconds in zip(settings, decodings, times, strict=False)
        ]


def _open(
    model: PreTrainedModel, setting: Setting, cold_dir: Path | None, opened: contextlib.ExitStack, steps: int
) -> Any:
    if setting.method == "full-device":
        return DynamicCache(config=model.config)
    if setting.method == "streaming-llm":
        return opened.enter_context(HillInferCache(model, StreamingLLM(budget=BUDGET)))
    hot = _ALL if setting.hot_share >= 1 else f"{setting.hot_share:.2%}"
    store = StoreSettings(hot_bytes=Budget.parse(hot), cold_dir=cold_dir)
    cache = opened.enter_context(HillInferCache(model, HillInfer(alpha=setting.alpha), store=store))
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
    simulated = simulate(hardware, shape, methods.named(setting.method), measured.trace)
    ours, theirs = simulated.median_step * 1e3, median_ms(measured.seconds)
    return Row(
        setting.policy, setting.context, setting.hot_share, theirs, ours, ours / theirs - 1, simulated.busy_shares
    )


def as_dict(rows: Sequence[Row], hardware: Hardware, told: dict[str, Any]) -> dict[str, Any]:
    """Rows and summary, ready for JSON."""
    errors = [abs(row.error) for row in rows]
    return {
        "kind": KIND,
        "version": VERSION,
        **told,
        "hardware": hardware.model_dump(),
        "rows": [asdict(row) for row in rows],
        "summary": {
            "settings": len(rows),
            "max_error": max(errors),
            "mean_error": statistics.mean(errors),
            "within_20_percent": sum(error <= LIMIT for error in errors),
        },
    }
