"""Recording a run of a real model on a real text."""

from __future__ import annotations

from collections.abc import Callable

import torch
from transformers import PreTrainedModel

from hillinfer.config import StoreSettings
from hillinfer.errors import DocumentError
from hillinfer.generation import cache_keyword
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import Policy
from hillinfer.simulation.recording import Recording
from hillinfer.simulation.trace import LayerStep, Trace


def record(
    model: PreTrainedModel,
    ids: torch.Tensor,
    policy: Policy | None,
    store: StoreSettings,
    *,
    name: str,
    tokens: int,
    steps: int,
    positions: bool = True,
    on_progress: Callable[[str], None] = lambda _: None,
) -> Trace:
    """Read ``tokens`` tokens of a text int64 [n], then decode ``steps`` more of it, and say what those steps did.

    policy   None: the stock cache, of which there is no more to say than how long it is
    name     the model's, for the trace

    The next token is always the text's, so that policies are asked the same. DocumentError for too short a text.
    """
    if len(ids) < tokens + steps:
        raise DocumentError(f"the text has {len(ids)} tokens, and {tokens + steps} are needed: take a longer one")
    if policy is None:
        return stock_trace(name, model.config.get_text_config(decoder=True).num_hidden_layers, tokens, steps)
    prompt = PromptRecord(
        model, ids[None, :tokens], on_progress=lambda done, of: on_progress(f"reading token {done} of {of}")
    )
    model.set_attn_implementation(NAME)
    try:
        with HillInferCache(model, policy, store=store) as cache:
            cache.expect(tokens + steps)
            prompt.replay(cache)
            recording = Recording(cache.engine(1), positions=positions)
            keyword = cache_keyword(model)
            with torch.inference_mode():
                for number in range(tokens, tokens + steps):
                    on_progress(f"decoding token {number - tokens + 1} of {steps}")
                    model(ids[number].view(1, 1), **{keyword: cache})
            recording.close()
            stats = cache.stats()
            return recording.trace(
                name,
                tokens=tokens,
                steps=steps,
                hot_bytes=str(store.hot_bytes),
                hot_hit_rate=stats.hot_hit_rate,
                moved_fraction=stats.moved_fraction,
            )
    finally:
        prompt.close()


def stock_trace(model: str, layers: int, tokens: int, steps: int) -> Trace:
    """Steps that attend to everything: the stock cache's."""
    works = [[LayerStep(tokens + step, attended=tokens + step)] * layers for step in range(steps)]
    return Trace(model, "full", works)
