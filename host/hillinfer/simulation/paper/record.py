"""Recording the runs: the default model reads a text once, and every run decodes what follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from transformers import PreTrainedModel

from hillinfer.config import Budget, StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import HillInfer
from hillinfer.simulation.paper.behaviour import noted
from hillinfer.simulation.paper.runs import Run
from hillinfer.simulation.recording import Recording, save
from hillinfer.simulation.trace import Trace


def record(
    model: PreTrainedModel,
    name: str,
    ids: torch.Tensor,
    runs: Sequence[Run],
    folder: Path,
    on_progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Read the beginning of a text int64 [n] and decode what follows, once per run, and write what was done.

    Positions are left out of the files, which so stay small; what they say of placement is kept.
    """
    for tokens in dict.fromkeys(run.tokens for run in runs):
        prompt = PromptRecord(
            model, ids[None, :tokens], on_progress=lambda done, of: on_progress(f"reading token {done} of {of}")
        )
        model.set_attn_implementation(NAME)
        try:
            for run in (run for run in runs if run.tokens == tokens):
                on_progress(f"decoding with α {run.alpha:.0%} and a pool of {run.hot:.1%}")
                trace = _decode(model, name, prompt, ids[tokens : tokens + run.steps], run)
                settings = {**trace.settings, **noted(trace)}
                save(replace(trace, positions=None, settings=settings), folder / run.file)
        finally:
            prompt.close()


def _decode(model: PreTrainedModel, name: str, prompt: PromptRecord, following: torch.Tensor, run: Run) -> Trace:
    store = StoreSettings(hot_bytes=Budget(share=run.hot))
    with HillInferCache(model, HillInfer(alpha=run.alpha), store=store) as cache:
        cache.expect(prompt.tokens + len(following))
        prompt.replay(cache)
        recording = Recording(cache.engine(1))
        with torch.inference_mode():
            for token in following:
                model(token.view(1, 1), **{cache_keyword(model): cache})
        recording.close()
        stats = cache.stats()
        return recording.trace(
            name,
            alpha=run.alpha,
            hot=run.hot,
            hot_hit_rate=stats.hot_hit_rate,
            moved_fraction=stats.moved_fraction,
        )
