"""A recorded prompt in another cache is as good as the prompt itself."""

import pytest
import torch
from transformers import DynamicCache

from hillinfer import policies
from hillinfer.generation import cache_keyword
from hillinfer.integrations.prompt_record import PromptRecord
from hillinfer.integrations.transformers import HillInferCache
from tests.tiny import tiny

PROMPT, STEPS = 300, 6
NOT_HERE = {"full", "heterocache"}
"""The stock cache, and what needs a profile of the model."""


def decode(model, ids, cache):
    with torch.inference_mode():
        steps = [model(ids[:, at : at + 1], **{cache_keyword(model): cache}) for at in range(PROMPT, ids.shape[1])]
    return torch.stack([step.logits[0, -1] for step in steps])


@pytest.mark.parametrize("family", ["llama", "gemma3", "opt"])
def test_replayed_and_read_caches_decode_alike(family, tmp_path):
    model = tiny(family, kv_heads=4 if family == "opt" else 2)
    ids = torch.arange(1, PROMPT + STEPS + 1)[None] * 7 % 290 + 5
    model.set_attn_implementation("sdpa")
    with torch.inference_mode():
        stock = DynamicCache(config=model.config)
        model(ids[:, :PROMPT], **{cache_keyword(model): stock})
    expected = decode(model, ids, stock)
    record = PromptRecord(model, ids[:, :PROMPT], chunk=64)
    torch.testing.assert_close(decode(model, ids, record.cache), expected, atol=1e-3, rtol=1e-3)
    model.set_attn_implementation("sdpa")
    torch.testing.assert_close(decode(model, ids, record.stock()), expected, atol=1e-3, rtol=1e-3)
    for name in sorted(set(policies.names()) - NOT_HERE - ({"infinigen"} if family == "opt" else set())):
        caches = [HillInferCache(model, policies.create(name), cold_dir=tmp_path, hot_bytes="60%") for _ in range(2)]
        with caches[0] as read, caches[1] as replayed:
            read.prompt_length = PROMPT
            with torch.inference_mode():
                for first in range(0, PROMPT, 64):
                    model(ids[:, first : min(first + 64, PROMPT)], **{cache_keyword(model): read})
            record.replay(replayed)
            torch.testing.assert_close(decode(model, ids, replayed), decode(model, ids, read), atol=1e-4, rtol=1e-4)
    record.close()


@pytest.mark.parametrize("family", ["llama", "gemma3"])
@pytest.mark.parametrize("shared", [0, 63, 64, 250, PROMPT])
def test_a_prompt_read_after_another_is_the_same_to_the_bit(family, shared):
    model = tiny(family)
    ids = torch.arange(1, PROMPT + STEPS + 1)[None] * 7 % 290 + 5
    before = ids[:, : PROMPT - 20].clone()
    before[:, shared:] = 9
    alone, after = PromptRecord(model, ids[:, :PROMPT], chunk=64), PromptRecord(model, before, chunk=64)
    decode(model, torch.full_like(ids, 11), after.cache)  # what was decoded is forgotten too
    assert after.read(ids[:, :PROMPT]) == PROMPT - min(shared, PROMPT - 20) // 64 * 64
    assert after.cache.stats().tiers.device.bytes == alone.cache.stats().tiers.device.bytes
    for record in (alone, after):
        model.set_attn_implementation("sdpa")
        record.decoded = decode(model, ids, record.stock())
    assert torch.equal(alone.decoded, after.decoded)
    model.set_attn_implementation("hillinfer")
    torch.testing.assert_close(decode(model, ids, after.cache), alone.decoded, atol=1e-3, rtol=1e-3)
