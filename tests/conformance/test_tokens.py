"""Tokens: the same from the same prompt on every driver, as every score is."""

from __future__ import annotations

import pytest
import torch

from hillinfer import HillInfer, HillInferCache
from hillinfer.generation import cache_keyword
from tests.conformance.drivers import store
from tests.tiny import random_ids, tiny

NEW = 16


@pytest.fixture(autouse=True)
def no_other_device(devices):
    devices.close()


def _generate(model, driver, folder, ids, mask):
    policy = HillInfer(alpha=0.2, floor=8)
    with HillInferCache(model, policy, store=store(driver, folder)) as cache:
        arguments = {cache_keyword(model): cache, "attention_mask": mask, "max_new_tokens": NEW, "do_sample": False}
        tokens = model.generate(ids, pad_token_id=0, **arguments)
        return tokens, cache.stats()


def test_a_prompt_gives_the_tokens_of_the_software_device(driver, tmp_path):
    model, ids = tiny(), random_ids(700)
    mask = torch.ones_like(ids)
    expected, _ = _generate(model, "software", tmp_path, ids, mask)
    tokens, stats = _generate(model, driver, tmp_path, ids, mask)
    assert torch.equal(tokens, expected)
    assert stats.device_scan_bytes > 0
    assert stats.device_launches > 0
    assert stats.device_seconds > 0


def test_a_batch_of_several_lengths_does_too(driver, tmp_path):
    model = tiny("qwen3", kv_heads=1)
    ids, mask = random_ids(500, batch=3, seed=1), torch.ones(3, 500, dtype=torch.long)
    for row, padding in enumerate((0, 200, 77)):
        ids[row, :padding] = 0
        mask[row, :padding] = 0
    expected, _ = _generate(model, "software", tmp_path, ids, mask)
    assert torch.equal(_generate(model, driver, tmp_path, ids, mask)[0], expected)
