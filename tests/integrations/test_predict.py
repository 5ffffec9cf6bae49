"""Foretelling queries: what is told is what the next layer would ask, and hooks never outlive their cache."""

from __future__ import annotations

import gc

import pytest
import torch
from transformers import DynamicCache

from hillinfer import HillInferCache
from hillinfer.errors import ModelError
from hillinfer.generation import cache_keyword
from hillinfer.policies import InfiniGen
from tests.integrations.test_hillinfer_cache import _generate, _prompt, _stock
from tests.tiny import tiny

POLICY = InfiniGen(budget="30%", dense_layers=0, skew_tokens=64)


def _hooks(model):
    return sum(len(module._forward_pre_hooks) for module in model.modules())


def _silenced(family, **overrides):
    """A model whose layers add nothing to their input, so that what is foretold is what is asked."""
    model = tiny(family, **overrides)
    for layer in model.model.layers:
        torch.nn.init.zeros_(layer.self_attn.o_proj.weight)
        torch.nn.init.zeros_(layer.mlp.down_proj.weight)
    return model


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "mistral", "gemma3"])
@pytest.mark.parametrize("batch", [1, 3])
def test_the_foretold_query_is_the_next_layers_where_a_layer_changes_nothing(family, batch, tmp_path):
    sliding = {"layer_types": ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]}
    model = _silenced(family, num_hidden_layers=4, **(sliding if family == "gemma3" else {}))
    ids = torch.cat([_prompt(90, seed) for seed in range(batch)])
    mask = torch.ones_like(ids)
    mask[1:, :7] = 0  # left padding
    with HillInferCache(model, POLICY, hot_bytes="90%", cold_dir=tmp_path) as cache:
        cache.prompt_length = 90
        told, asked, tell = {}, [], cache.foretell

        def foretell(layer, query, scaling):
            told[layer] = query, scaling
            tell(layer, query, scaling)

        cache.foretell = foretell
        with torch.inference_mode():
            _generate(model, ids, cache, mask, new=1)
            begin = cache.engine(batch).begin

            def noted(layer, sequence, query, keys, values, scaling):
                if layer in told:
                    torch.testing.assert_close(told[layer][0][sequence], query, rtol=1e-4, atol=1e-4)
                    assert told[layer][1] == scaling
                    asked.append((layer, sequence))
                return begin(layer, sequence, query, keys, values, scaling)

            cache.engine(batch).begin = noted
            grown = torch.cat([mask, torch.ones(batch, 1, dtype=mask.dtype)], 1)
            position = grown.sum(-1, keepdim=True) - 1
            model(ids[:, -1:], attention_mask=grown, position_ids=position, **{cache_keyword(model): cache})
        layers = [1] if family == "gemma3" else [1, 2, 3]
        assert asked == [(layer, sequence) for layer in layers for sequence in range(batch)]


def test_the_stock_cache_is_matched_when_everything_is_attended(tmp_path):
    model = tiny("llama", num_hidden_layers=3)
    ids = _prompt(120)
    tokens, logits = _stock(model, ids)
    policy = InfiniGen(budget="99.9%", dense_layers=0, margin=1e9)
    with HillInferCache(model, policy, hot_bytes="100%", cold_dir=tmp_path) as cache:
        ours, our_logits = _generate(model, ids, cache)
    assert torch.equal(tokens[:, :121], ours[:, :121])
    torch.testing.assert_close(our_logits[:, 0], logits[:, 0], atol=1e-3, rtol=0)


def test_hooks_go_with_the_cache_however_it_goes(tmp_path):
    model = tiny("llama")
    cache = HillInferCache(model, POLICY, cold_dir=tmp_path)
    assert _hooks(model) > 0
    cache.close()
    cache.close()
    assert _hooks(model) == 0
    cache = HillInferCache(model, POLICY, cold_dir=tmp_path)
    del cache
    gc.collect()
    assert _hooks(model) == 0
    with pytest.raises(ZeroDivisionError), HillInferCache(model, POLICY, cold_dir=tmp_path):
        raise ZeroDivisionError
    assert _hooks(model) == 0


def test_a_pass_with_another_cache_is_none_of_its_business(tmp_path):
    model = tiny("llama")
    ids = _prompt(60)
    with HillInferCache(model, POLICY, hot_bytes="90%", cold_dir=tmp_path) as cache:
        cache.foretell = lambda *_: pytest.fail("told of another cache's step")
        _generate(model, ids, DynamicCache(config=model.config), new=3)
        with HillInferCache(model, alpha=1, cold_dir=tmp_path) as other:
            _generate(model, ids, other, new=3)


def test_a_model_without_rotary_queries_is_refused(tmp_path):
    model = tiny("opt", kv_heads=4)
    with pytest.raises(ModelError, match="use a policy that does not predict"):
        HillInferCache(model, POLICY, cold_dir=tmp_path)
    assert _hooks(model) == 0
    assert model.config._attn_implementation != "hillinfer"
