"""All policies at equal budgets, on the same prompts: what each costs in memory and time, and what it gets wrong.

Each prompt is read by the model once and replayed into every policy's cache. Then all of them decode the same tokens
(teacher-forced): their distributions are compared with the full cache's, step by step.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.bench.divergence import divergence, share_right
from hillinfer.evaluation.contender import FULL, Contender
from hillinfer.evaluation.task import Item
from hillinfer.generation import cache_keyword, held_tiers
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.policies import find, names
from hillinfer.report import Tiers


@dataclass
class Row:
    """One policy at one budget and context.

    budget         share of the cached tokens that may be kept (policies that drop) or attended (those that don't)
    kl             KL(full cache ‖ policy) per token of text, nats; None where the policy can't have this budget
    nll_delta      mean negative log-likelihood of the text's tokens, less the full cache's
    agreement      share of steps with the full cache's likeliest token
    passkey        share of the hidden numbers' digits said right, over all depths
    *_bytes        per tier, measured when the text was decoded; drops: whether tokens are gone for good
    ms_per_token   median of the steps on the text
    note           why there are no figures
    """

    policy: str
    context: int
    budget: float
    kl: float | None = None
    nll_delta: float | None = None
    agreement: float | None = None
    passkey: float | None = None
    device_bytes: int | None = None
    hot_bytes: int | None = None
    cold_bytes: int | None = None
    ms_per_token: float | None = None
    drops: bool = False
    note: str = ""

    @property
    def fast_bytes(self) -> int | None:
        """On the compute device and in DRAM together."""
        return None if self.device_bytes is None or self.hot_bytes is None else self.device_bytes + self.hot_bytes


@dataclass(frozen=True)
class Task:
    """What all policies do at one context length: go on with real texts int64 [1, N], and say hidden numbers.

    steps   of each text, its last tokens: decoded one by one
    """

    context: int
    texts: Sequence[torch.Tensor]
    steps: int
    passkeys: Sequence[Item]


@dataclass(frozen=True)
class _Decoded:
    """logprobs float32 [steps, vocabulary]"""

    logprobs: torch.Tensor
    step_seconds: list[float]
    tiers: Tiers


class Comparison:
    """Runs policies on tasks.

    chosen        names and settings of policies, the budget apart; the stock cache is always run first
    budgets       shares of the cached tokens
    cold_dir      folder of the cold files
    on_progress   called with what is being done
    """

    def __init__(
        self,
        model: PreTrainedModel,
        chosen: dict[str, dict[str, Any]],
        budgets: Sequence[float],
        cold_dir: Path | None,
        on_progress: Callable[[str], None],
    ) -> None:
        self._model, self._chosen, self._budgets = model, chosen, budgets
        self._cold_dir, self._on_progress = cold_dir, on_progress

    def run(self, task: Task) -> list[Row]:
        """Rows of one context length, the full cache's first."""
        rows = [Row(FULL, task.context, 1.0)]
        for budget in self._budgets:
            for name in self._chosen:
                rows.append(self._row(name, task.context, budget))
        texts: list[list[tuple[_Decoded, _Decoded, torch.Tensor]]] = [[] for _ in rows]
        for number, text in enumerate(task.texts, 1):
            for mine, each in zip(texts, self._decode_all(rows, text, task.steps, f"text {number}"), strict=True):
                mine.extend(each)
        found: list[list[float]] = [[] for _ in rows]
        for passkey in task.passkeys:
            tokens, what = (
                torch.cat([passkey.prompt, passkey.answer])[None],
                f"passkey at depth {passkey.labels['depth']}",
            )
            decoded = self._decode_all(rows, tokens, len(passkey.answer), what)
            for digits, each in zip(found, decoded, strict=True):
                digits.extend(share_right(run.logprobs, answer) for run, _, answer in each)
        for row, runs, digits in zip(rows, texts, found, strict=True):
            if runs:
                _fill(row, runs)
            if digits:
                row.passkey = statistics.mean(digits)
        return rows

    def _row(self, name: str, context: int, budget: float) -> Row:
        row = Row(name, context, budget)
        row.drops = find(name).drops
        row.note = self._contender(row).undefined(self._model, context, self._cold_dir)
        return row

    def _contender(self, row: Row) -> Contender:
        return Contender(row.policy, row.budget, self._chosen[row.policy])

    def _decode_all(
        self, rows: list[Row], tokens: torch.Tensor, steps: int, what: str
    ) -> list[list[tuple[_Decoded, _Decoded, torch.Tensor]]]:
        """For each row what it decoded, what the full cache did, and tokens int64 [steps]; nothing if undefined."""
        answer = tokens.shape[1] - steps
        self._on_progress(f"{tokens.shape[1]} tokens, {what}: reading the prompt")
        record = PromptRecord(self._model, tokens[:, : answer - 1])
        try:
            self._model.set_attn_implementation("sdpa")  # what a user of the stock cache runs
            reference = self._decode(record.stock(), tokens, steps)
            runs = [[(reference, reference, tokens[0, answer:])]]
            for row in rows[1:]:
                runs.append([])
                if row.note:
                    continue
                self._on_progress(f"{tokens.shape[1]} tokens, {what}: {row.policy} at {row.budget:.0%}")
                with self._contender(row).open(self._model, tokens.shape[1], self._cold_dir) as cache:
                    record.replay(cache)
                    runs[-1].append((self._decode(cache, tokens, steps), reference, tokens[0, answer:]))
        finally:
            record.close()
        return runs

    def _decode(self, cache: Any, tokens: torch.Tensor, steps: int) -> _Decoded:
        """Each step sees a token and is to say the next one; the prompt's last token is the first that is decoded."""
        keyword = {cache_keyword(self._model): cache}
        logprobs, seconds = [], []
        with torch.inference_mode():
            for at in range(tokens.shape[1] - steps - 1, tokens.shape[1] - 1):
                start = time.perf_counter()
                out = self._model(tokens[:, at : at + 1], **keyword)
                seconds.append(time.perf_counter() - start)
                logprobs.append(out.logits[0, -1].float().log_softmax(-1))
        tiers = held_tiers(cache)
        return _Decoded(torch.stack(logprobs), seconds, tiers)


def _fill(row: Row, runs: list[tuple[_Decoded, _Decoded, torch.Tensor]]) -> None:
    """Means over all texts, but for times: the median of all steps."""
    row.kl = statistics.mean(divergence(full.logprobs, run.logprobs) for run, full, _ in runs)
    row.nll_delta = statistics.mean(_nll(run.logprobs, said) - _nll(full.logprobs, said) for run, full, said in runs)
    row.agreement = statistics.mean(share_right(run.logprobs, full.logprobs.argmax(-1)) for run, full, _ in runs)
    row.ms_per_token = statistics.median(second for run, _, _ in runs for second in run.step_seconds) * 1e3
    row.device_bytes = max(run.tiers.device.bytes for run, _, _ in runs)
    row.hot_bytes = max(run.tiers.hot.bytes for run, _, _ in runs)
    row.cold_bytes = max(run.tiers.cold.bytes for run, _, _ in runs)


def _nll(logprobs: torch.Tensor, said: torch.Tensor) -> float:
    return -float(logprobs.gather(1, said[:, None]).mean())


def check_names(wanted: str) -> list[str]:
    """Names of policies to compare, from a list with commas, all if it is empty; SettingError for an unknown one."""
    chosen = [name.strip() for name in wanted.split(",") if name.strip()] or names()
    for name in chosen:
        find(name)
    return [name for name in chosen if name != FULL]


def best(rows: Sequence[Row], context: int, share: float) -> Row | None:
    """The row of lowest KL of those whose fast memory holds at most ``share`` of the context's KV."""
    whole = next(row.device_bytes for row in rows if row.policy == FULL and row.context == context)
    assert whole is not None
    kept = [
        row
        for row in rows
        if row.context == context and row.kl is not None and (row.fast_bytes or whole) <= share * whole
    ]
    return min(kept, key=lambda row: row.kl or 0.0, default=None)


def as_dict(rows: Sequence[Row], settings: dict[str, Any]) -> dict[str, Any]:
    """Settings and rows, ready for JSON."""
    return {"benchmark": "policies", **settings, "rows": [asdict(row) | {"fast_bytes": row.fast_bytes} for row in rows]}
