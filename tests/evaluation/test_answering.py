"""What a cache answers, with as few steps as will do, is what plain decoding says."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache

from hillinfer.evaluation.answering import answer, end_tokens
from hillinfer.evaluation.contender import parse_contenders
from hillinfer.evaluation.reading import Reading
from hillinfer.evaluation.task import Item
from hillinfer.generation import cache_keyword
from tests.tiny import tiny

MODEL = tiny("llama")
GEMMA = tiny("gemma3")
PROMPT = torch.arange(40) * 7 % 290 + 5
NONE = frozenset()


@contextmanager
def opened():
    cache = DynamicCache(config=MODEL.config)
    with torch.inference_mode():
        MODEL(PROMPT[None, :-1], **{cache_keyword(MODEL): cache})
    opened.times += 1
    yield cache


def plain(new: int, ends: frozenset[int] = NONE) -> list[int]:
    """The likeliest tokens, the whole text computed anew for each."""
    ids = PROMPT[None]
    said: list[int] = []
    while len(said) < new:
        with torch.inference_mode():
            token = int(MODEL(ids).logits[0, -1].argmax())
        if token in ends:
            break
        said.append(token)
        ids = torch.cat([ids, torch.tensor([[token]])], 1)
    return said


def item(gold: list[int], new: int) -> Item:
    return Item("", 40, PROMPT, torch.tensor(gold), (), new)


SAID = plain(9)


@settings(max_examples=25)
@given(agree=st.integers(0, 5), length=st.integers(1, 5), new=st.integers(0, 9), end=st.integers(-1, 8))
def test_what_is_said_is_what_plain_decoding_says(agree: int, length: int, new: int, end: int) -> None:
    gold = SAID[:agree] + [5] * max(0, length - agree)
    ends = NONE if end < 0 else frozenset([SAID[end]])
    opened.times = 0
    answered = answer(MODEL, opened, item(gold, new), ends, lambda _: False)
    assert answered.said == plain(new, ends)
    assert answered.logprobs.shape == (len(gold), MODEL.config.vocab_size)
    assert opened.times <= 2


def test_the_prompt_is_replayed_again_only_where_the_answer_parts_from_the_gold_one() -> None:
    for gold, new, settled, times in (
        (SAID[:4], 4, False, 1),
        (SAID[:4], 8, False, 1),
        ([*SAID[:3], 5], 4, False, 1),  # the last token is known as well
        ([SAID[0], 5, 6], 4, False, 2),
        ([SAID[0], 5, 6], 4, True, 1),
    ):
        opened.times = 0
        answer(MODEL, opened, item(gold, new), NONE, lambda _, settled=settled: settled)
        assert opened.times == times, (gold, new, settled)


def test_the_gold_answer_is_as_likely_as_the_whole_text_says() -> None:
    gold = [9, 30, 77, 5]
    answered = answer(MODEL, opened, item(gold, 0), NONE, lambda _: False)
    with torch.inference_mode():
        logits = MODEL(torch.cat([PROMPT, torch.tensor(gold)])[None]).logits[0, len(PROMPT) - 1 : -1]
    torch.testing.assert_close(answered.logprobs, logits.log_softmax(-1), atol=1e-4, rtol=1e-4)
    assert answered.said == []


@pytest.mark.parametrize(("end", "tokens"), [(None, set()), (2, {2}), ([2, 4], {2, 4})])
def test_end_of_text_tokens(end: object, tokens: set[int]) -> None:
    model = tiny("llama")
    model.generation_config.eos_token_id = end
    assert end_tokens(model) == tokens


def test_layers_with_sliding_windows_count_for_every_cache(tmp_path: Path) -> None:
    reading, held = Reading(GEMMA, tmp_path), []
    reading.read(PROMPT[:-1])
    for contender in parse_contenders("streaming-llm@100%", {}):
        opening = partial(reading.open, contender, 50)
        held.append(answer(GEMMA, opening, item([7], 0), NONE, bool).tiers.device.bytes)
    reading.close()
    assert held[0] == held[1] > 0
