"""StreamingLLM against its oracle, and against the stock cache with everything else masked."""

import pytest
import torch
from transformers import DynamicCache

from hillinfer import HillInferCache
from hillinfer.generation import cache_keyword
from hillinfer.policies import StreamingLLM
from tests.policies.oracle import KINDS, NEW, Plain, check, record
from tests.tiny import random_ids, tiny


class SinksAndRecent(Plain):
    def ranks(self, head, budget):  # noqa: ARG002
        return [float("inf") if p < 4 else p for p in self.kept[head]]


@pytest.mark.parametrize(("kv_heads", "batch"), KINDS)
def test_every_step_attends_like_the_oracle(kv_heads, batch):
    calls = record(StreamingLLM(budget="25%"), kv_heads, batch)
    _, decoded = check(calls, SinksAndRecent, lambda cached: int(cached * 0.25))
    assert decoded == 2 * batch * (NEW - 1)


@pytest.mark.parametrize("family", ["llama", "qwen3", "opt"])
def test_positions_stay_those_of_the_text(family):
    """The stock cache, which drops nothing, with the same tokens masked: rotary and learned positions agree."""
    model = tiny(family, kv_heads=4)
    ids, budget = random_ids(100), 20
    keyword = cache_keyword(model)
    with torch.inference_mode(), HillInferCache(model, StreamingLLM(budget=budget)) as cache:
        model(ids[:, :80], **{keyword: cache})
        ours = [model(ids[:, t : t + 1], **{keyword: cache}).logits[0, -1] for t in range(80, 100)]
        assert cache.stats().dropped_tokens == 100 - budget
    model.set_attn_implementation("eager")
    stock = DynamicCache(config=model.config)
    with torch.inference_mode():
        model(ids[:, :80], **{keyword: stock})
        for t, logits in zip(range(80, 100), ours, strict=True):
            seen = torch.zeros(1, 1, 1, t + 1, dtype=torch.bool)
            seen[..., :4] = True
            seen[..., max(4, t - (budget - 4)) :] = True
            mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
            position = torch.tensor([[t]])
            out = model(ids[:, t : t + 1], attention_mask=mask, position_ids=position, **{keyword: stock})
            torch.testing.assert_close(logits, out.logits[0, -1], atol=1e-3, rtol=0)
