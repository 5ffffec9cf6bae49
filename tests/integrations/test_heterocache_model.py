"""HeteroCache under transformers: a profile of this very model, quantised weights, reset, conversations."""

from __future__ import annotations

import json
import warnings

import pytest
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from hillinfer import HillInferCache
from hillinfer.errors import ModelError, ProfileError, SettingError
from hillinfer.generation import cache_keyword
from hillinfer.integrations.identity import identify
from hillinfer.policies import HeteroCache
from hillinfer.profiling.measure import AnalysisSettings, measure
from hillinfer.profiling.profile_file import default_profile, write_profile
from tests.tiny import random_ids, tiny, tiny_model_dir

NEW = 12


def _profile(model):
    """Measured, and judged so that there are clusters: a random model has no heads alike by the usual thresholds."""
    profile = measure(model, random_ids(150, vocab=200), AnalysisSettings(steps=5, top_k=30))
    profile = profile.judged_by(0.1, 0.19)
    assert profile.counts["pivot"] >= 2
    return profile


def _generate(model, ids, cache, new=NEW):
    keywords = {"max_new_tokens": new, "do_sample": False, "pad_token_id": 0, cache_keyword(model): cache}
    return model.generate(ids, attention_mask=torch.ones_like(ids), **keywords)


def _cache(model, policy, tmp_path):
    return HillInferCache(model, policy, hot_bytes="100%", cold_dir=tmp_path)


def test_reset_leaves_nothing_behind_and_a_conversation_goes_on(tmp_path):
    model = tiny("llama", 4, 8)
    policy = HeteroCache(profile=_profile(model), budget="70%", drift=0.95)
    with _cache(model, policy, tmp_path) as cache:
        first = _generate(model, random_ids(150), cache)
        assert cache.stats().events["refills"] >= cache.stats().events["drifts"] > 0
        more = torch.cat([first, random_ids(40, seed=1)], 1)
        continued = _generate(model, more, cache)
        cache.reset()
        _generate(model, random_ids(60, batch=3, seed=2), cache)
        cache.reset()
        assert torch.equal(_generate(model, random_ids(150), cache), first)
        assert torch.equal(_generate(model, more, cache), continued)


def test_everything_kept_gives_the_stock_caches_tokens(tmp_path):
    for family, kv_heads in [("llama", 2), ("qwen2", 2), ("qwen3", 4), ("mistral", 2), ("gemma3", 2), ("opt", 4)]:
        model = tiny(family, kv_heads)
        profile = measure(model, random_ids(100), AnalysisSettings(steps=3, top_k=20)).judged_by(0.1, 0.1)
        expected = model.generate(random_ids(120), max_new_tokens=NEW, do_sample=False, pad_token_id=0)
        with _cache(model, HeteroCache(profile=profile, budget="100%"), tmp_path) as cache:
            assert torch.equal(_generate(model, random_ids(120), cache), expected)


@pytest.mark.parametrize("weights", ["8 bits", "4 bits"])
def test_quantised_weights_quantised_rows_and_near_data_scores_work_together(tmp_path, weights):
    """bitsandbytes' weights, INT4 rows on the device, pivots that trigger and a storage device that supplies."""
    folder = tiny_model_dir(tmp_path / "model", kv_heads=4, heads=8)
    profile = _profile(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32))
    config = BitsAndBytesConfig(load_in_8bit=True)
    if weights == "4 bits":
        config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bitsandbytes warns of slow processors
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, quantization_config=config)
        assert {p.dtype for p in model.model.layers.parameters()} & {torch.int8, torch.uint8}
        sizes = {}
        for kv_format in ("exact", "int4"):
            policy = HeteroCache(profile=profile, budget="70%", drift=0.95, supply="csd", kv_format=kv_format)
            with _cache(model, policy, tmp_path) as cache:
                tokens = _generate(model, random_ids(150, vocab=200), cache)
                stats, ledger = cache.stats(), cache._engine.settled_ledger()
                assert tokens.shape == (1, 150 + NEW)
                assert ledger.events["refills"] > 0
                assert stats.device_scan_bytes > 0
                sizes[kv_format] = stats.tiers.device.bytes
    assert sizes["int4"] < 0.3 * sizes["exact"]


def test_a_profile_of_another_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path / "home"))
    model = tiny("llama", 4, 8)
    profile = _profile(model)
    path = tmp_path / "profile.json"
    write_profile(profile, path)
    other = tiny("llama", 4, 8, seed=1)
    with pytest.raises(ProfileError, match=r"of another model .* other weights"):
        HillInferCache(other, HeteroCache(profile=path), cold_dir=tmp_path)
    with pytest.raises(ProfileError, match="kv heads 4, not 2"):
        HillInferCache(tiny("llama", 2, 8), HeteroCache(profile=path), cold_dir=tmp_path)
    with pytest.raises(ModelError, match="one KV head per layer"):
        HillInferCache(tiny("llama", 1, 8), HeteroCache(profile=path), cold_dir=tmp_path)
    with pytest.raises(SettingError, match="hillinfer profile"):
        HillInferCache(model, HeteroCache(), cold_dir=tmp_path)
    write_profile(profile, default_profile(identify(model).name))
    HillInferCache(model, HeteroCache(), cold_dir=tmp_path).close()  # found where hillinfer profile leaves it
    content = json.loads(path.read_text())
    assert content["model"]["kind"] == "llama"
    half = tiny("llama", 4, 8).to(torch.bfloat16)
    HillInferCache(half, HeteroCache(profile=path), cold_dir=tmp_path).close()  # the same model, rounded
