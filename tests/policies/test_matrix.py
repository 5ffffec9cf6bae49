"""Every policy × model family × chunk size × form of budget. Adding a policy: a line in SETTINGS."""

from __future__ import annotations

import functools

import pytest
import torch
from transformers import DynamicCache

from hillinfer import HillInferCache, policies
from hillinfer.errors import ModelError
from hillinfer.generation import cache_keyword
from tests.profiling.profiles import profile_of
from tests.tiny import HEAD_DIM, random_ids, tiny

SETTINGS = {
    "hillinfer": {"floor": 8},
    "streaming-llm": {},
    "h2o": {},
    "snapkv": {"window": 8},
    "pyramidkv": {"window": 8},
    "cake": {"window": 8},
    "quest": {"page": 8, "dense_layers": 1},
    "leoam": {"chunk": 16, "first_layers": 1},
    "infinigen": {"dense_layers": 1},
    "shadowkv": {"recent": 8, "outliers": 1},
    "omnikv": {"filter_layers": (0,)},
    "heterocache": {"profile": None},
}
"""What makes a policy's windows and pages fit a prompt of 72 tokens."""
KV_HEADS = {"llama": 2, "opt": 4, "gemma3": 1}
FULL_LAYERS = {"llama": 2, "opt": 2, "gemma3": 1}
PROFILES = {
    "llama": profile_of(["Ps", "aa"], [[0.5, 0.3], [0.6, 0.8]], group=2, dim=HEAD_DIM),
    "opt": profile_of(["Psss", "aaaa"], [[0.5, 0.3, 0.6, 0.4], [0.6, 0.8, 0.9, 0.7]], dim=HEAD_DIM),
}
REFUSED = {("infinigen", "opt"): "cannot be foretold", ("heterocache", "gemma3"): "one KV head"}
"""Families a policy cannot serve, and what it says."""
PROMPT, NEW, TOKENS = 72, 6, 32


@functools.cache
def _model(family):
    return tiny(family, kv_heads=KV_HEADS[family])


def _greedy(model, cache, chunk):
    """Six tokens after the prompt, read ``chunk`` tokens at a time."""
    keyword, ids = cache_keyword(model), random_ids(PROMPT)
    with torch.inference_mode():
        for start in range(0, PROMPT, chunk):
            out = model(ids[:, start : min(start + chunk, PROMPT)], **{keyword: cache})
        tokens = [int(out.logits[0, -1].argmax())]
        while len(tokens) < NEW:
            out = model(torch.tensor([[tokens[-1]]]), **{keyword: cache})
            tokens.append(int(out.logits[0, -1].argmax()))
    return tokens


@functools.cache
def _stock(family):
    model = _model(family)
    return _greedy(model, DynamicCache(config=model.config), PROMPT)


def _run(name, family, budget, chunk, folder):
    """The tokens, and the bytes of rows kept in the end if the policy drops any."""
    settings = SETTINGS[name]
    if "profile" in settings:
        settings = {"profile": PROFILES.get(family)}
    policy = policies.create(name, budget=budget, **settings)
    with HillInferCache(_model(family), policy, cold_dir=folder, hot_bytes="8MiB") as cache:
        cache.prompt_length = PROMPT
        tokens = _greedy(_model(family), cache, chunk)
        return tokens, cache.stats().tiers.device.bytes if policy.drops else 0


def test_every_policy_has_a_line():
    assert set(SETTINGS) == set(policies.names()) - {"full"}


@pytest.mark.parametrize("family", KV_HEADS)
@pytest.mark.parametrize("name", SETTINGS)
def test_chunks_and_forms_of_the_budget_agree(name, family, tmp_path):
    if (name, family) in REFUSED:
        with pytest.raises(ModelError, match=REFUSED[name, family]):
            _run(name, family, "50%", PROMPT, tmp_path)
        return
    row = FULL_LAYERS[family] * 2 * KV_HEADS[family] * HEAD_DIM * 4
    cached = PROMPT + NEW - 1
    assert _run(name, family, "100%", 33, tmp_path)[0] == _stock(family)

    share, kept = _run(name, family, "50%", PROMPT, tmp_path)
    assert kept <= 0.5 * cached * row
    assert _run(name, family, "50%", 7, tmp_path)[0] == share

    number, kept = _run(name, family, str(TOKENS), 33, tmp_path)
    assert kept <= TOKENS * row
    assert _run(name, family, f"{TOKENS * row}B", 64, tmp_path)[0] == number
