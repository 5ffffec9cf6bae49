"""Measure a model's head profile: read a text, continue it greedily, and watch where every KV head looks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

import torch

from hillinfer.errors import DocumentError, SettingError
from hillinfer.profiling.identity import check_profiled
from hillinfer.profiling.profile import TAU, HeadProfile, judge
from hillinfer.profiling.similarity import similarity, typical
from hillinfer.profiling.stability import stability
from hillinfer.profiling.statistics import HeadStatistics
from hillinfer.version import __version__

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class AnalysisSettings:
    """steps        T, greedy tokens watched after the text
    top_k        tokens that count as what a head looks at
    kernel       positions a softmax row is averaged over (odd)
    tau_stable   stability from which on a head outside clusters is an anchor
    tau_similar  overlap from which on two heads of a layer are joined
    at_step      draw edges by the overlaps of this step alone (−1: the last), as the authors' published code does;
                 None: by their medians over all steps, as in the paper
    """

    steps: int = 100
    top_k: int = 1024
    kernel: int = 5
    tau_stable: float = TAU
    tau_similar: float = TAU
    at_step: int | None = None

    def __post_init__(self) -> None:
        if self.steps < 1 or self.top_k < 1:
            raise SettingError("a head analysis needs at least 1 step and a top-k of at least 1")
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise SettingError(f"kernel is {self.kernel}: a window round a position is of odd width, 5 say")
        if self.at_step is not None and not -self.steps <= self.at_step < self.steps:
            raise SettingError(f"at_step is {self.at_step}: one of {self.steps} steps is meant, from 0 on, -1 the last")
        for name in ("tau_stable", "tau_similar"):
            if not 0 <= getattr(self, name) <= 1:
                raise SettingError(f"{name} is {getattr(self, name)}: a share of overlapping tokens is between 0 and 1")


def measure(
    model: Any,
    input_ids: torch.Tensor,
    settings: AnalysisSettings,
    *,
    name: str | None = None,
    text: str = "",
    prefill_chunk: int = 512,
    on_prefill: Progress | None = None,
    on_step: Progress | None = None,
) -> HeadProfile:
    """The profile of a transformers model, from a text of tokens int64 [1, N] and ``settings.steps`` more.

    name, text   what the profile says of the model and of the text
    on_prefill, on_step   get (done, in all)

    ModelError for a model that HeteroCache cannot serve, DocumentError for a text of no more than ``top_k`` tokens.
    """
    from hillinfer.generation import cache_keyword, forward_parameters
    from hillinfer.integrations.identity import identify
    from hillinfer.integrations.transformers import HillInferCache
    from hillinfer.policies.watching import Watching

    identity = identify(model)
    check_profiled(identity)
    tokens = input_ids.shape[1]
    if tokens <= settings.top_k:
        raise DocumentError(
            f"the text has {tokens} tokens, of which the {settings.top_k} most important ones would be all: give a "
            "longer text (--text) or a smaller --top-k"
        )
    statistics = HeadStatistics(len(identity.layers), settings.top_k, settings.kernel)
    with HillInferCache(model, Watching(statistics.add)) as cache, torch.inference_mode():
        cache.prompt_length = tokens
        cache.expect(tokens + settings.steps)
        keywords: dict[str, Any] = {cache_keyword(model): cache, "use_cache": True}
        if "logits_to_keep" in forward_parameters(model):
            keywords["logits_to_keep"] = 1
        input_ids = input_ids.to(model.device)
        logits = torch.empty(0)
        for begin in range(0, tokens, prefill_chunk):
            end = min(begin + prefill_chunk, tokens)
            logits = model(input_ids[:, begin:end], **keywords).logits
            if on_prefill is not None:
                on_prefill(end, tokens)
        for step in range(settings.steps):
            logits = model(logits[:, -1:].argmax(-1), **keywords).logits
            if on_step is not None:
                on_step(step + 1, settings.steps)
    digest = hashlib.sha256(input_ids.cpu().numpy().tobytes()).hexdigest()
    origin = {
        "text": {"source": text, "tokens": tokens, "sha256 of the tokens": digest},
        "settings": {"steps": settings.steps, "top_k": settings.top_k, "kernel": settings.kernel}
        | {"edges": "median over steps" if settings.at_step is None else f"step {settings.at_step}"},
        "versions": {"hillinfer": __version__} | {of: metadata.version(of) for of in ("torch", "transformers")},
    }
    return judge(
        identity if name is None else replace(identity, name=name),
        stability(statistics.with_prefill),
        typical(statistics.between_heads, settings.at_step),
        similarity(statistics.between_heads),
        settings.tau_stable,
        settings.tau_similar,
        origin,
    )
