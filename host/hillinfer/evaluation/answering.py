"""What one cache makes of one item: the gold answer's distributions, and what the model says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from hillinfer.evaluation.task import Item
from hillinfer.generation import cache_keyword, held_tiers
from hillinfer.report import Tiers

OpenCache = Callable[[], AbstractContextManager[Any]]
"""Opens a cache that holds all of the prompt but its last token."""


@dataclass(frozen=True)
class Answered:
    """logprobs float32 [m, vocabulary]: before each of the answer's tokens, those before it given (teacher-forced).

    said    tokens the model says by itself, an end-of-text token not among them
    tiers   what the cache held when the answer's last token was asked for
    """

    logprobs: torch.Tensor
    said: list[int]
    tiers: Tiers


def answer(
    model: PreTrainedModel,
    open_cache: OpenCache,
    item: Item,
    ends: frozenset[int],
    settled: Callable[[list[int]], bool],
) -> Answered:
    """The gold answer, teacher-forced, and what is said: ``new_tokens`` at most, up to a token of ``ends``.

    While the likeliest token is the gold one, both are the same steps. Only where they part is the answer begun again,
    unless ``settled`` says of what was said so far that the rest does not matter.
    """
    gold = item.answer.tolist()
    with open_cache() as cache:
        logprobs = teacher_forced(model, cache, int(item.prompt[-1]), gold)
        tiers = held_tiers(cache)
        likeliest = logprobs.argmax(-1).tolist()
        known = _known(gold, likeliest, ends)
        if known == gold and item.new_tokens > len(gold) and not settled(known):
            known += _say(model, cache, gold[-1], item.new_tokens - len(gold), ends)
            return Answered(logprobs, known, tiers)
    ended = known[-1] == _END
    known = known[:-1] if ended else known
    if ended or len(known) >= item.new_tokens or settled(known):
        return Answered(logprobs, known[: item.new_tokens], tiers)
    with open_cache() as cache:
        return Answered(logprobs, _say(model, cache, int(item.prompt[-1]), item.new_tokens, ends), tiers)


def likelihood(model: PreTrainedModel, open_cache: OpenCache, item: Item, choice: torch.Tensor) -> float:
    """Log-likelihood of int64 [m] after the prompt, all of it, in nats."""
    with open_cache() as cache:
        logprobs = teacher_forced(model, cache, int(item.prompt[-1]), choice.tolist())
    return float(logprobs.gather(1, choice[:, None]).sum())


def teacher_forced(model: PreTrainedModel, cache: Any, last: int, tokens: list[int]) -> torch.Tensor:
    """Log-probabilities float32 [m, vocabulary] before each of m tokens, decoded one by one after the prompt's last."""
    return torch.stack([step(model, cache, token) for token in [last, *tokens[:-1]]])


_END = -1
"""Stands for an end-of-text token that was said."""


def _known(gold: list[int], likeliest: list[int], ends: frozenset[int]) -> list[int]:
    """What is said for sure: the gold tokens up to the first that is not the likeliest, and that one's rival."""
    known = []
    for expected, token in zip(gold, likeliest, strict=True):
        known.append(_END if token in ends else token)
        if token != expected or token in ends:
            break
    return known


def _say(model: PreTrainedModel, cache: Any, token: int, most: int, ends: frozenset[int]) -> list[int]:
    """The likeliest tokens after ``token``, one by one."""
    said: list[int] = []
    while len(said) < most:
        token = int(step(model, cache, token).argmax())
        if token in ends:
            break
        said.append(token)
    return said


def step(model: PreTrainedModel, cache: Any, token: int) -> torch.Tensor:
    """Log-probabilities float32 [vocabulary], in DRAM, of what follows a token."""
    ids = torch.tensor([[token]], device=model.device)
    keyword: dict[str, Any] = {cache_keyword(model): cache}
    with torch.inference_mode():
        logits: torch.Tensor = model(ids, **keyword).logits[0, -1]
    return logits.float().log_softmax(-1).cpu()


def end_tokens(model: PreTrainedModel) -> frozenset[int]:
    """Tokens that end a text, as ``generate`` has them."""
    end = model.generation_config.eos_token_id if model.generation_config is not None else None
    return frozenset([] if end is None else end if isinstance(end, list) else [end])
