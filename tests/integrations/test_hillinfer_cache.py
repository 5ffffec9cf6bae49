"""The transformers adapter: every family, exactly the stock cache at α = 1, batches, chunks, and clear refusals."""

from __future__ import annotations

import gc
import os
import threading
import weakref

import pytest
import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

from hillinfer import HillInfer, HillInferCache
from hillinfer.errors import HillInferError, MemoryBudgetError, ModelError, SettingError
from hillinfer.generation import cache_keyword
from tests.tiny import CASES, tiny

NEW = 24
HOT = "60%"  # the tiny Gemma has one full-attention layer, whose working set must fit


def _prompt(tokens, seed=0, low=5):
    return torch.randint(low, 300, (1, tokens), generator=torch.Generator().manual_seed(seed))


def _generate(model, ids, cache, mask=None, new=NEW):
    """Greedy tokens [B, N + new] and the logits of every step [B, new, vocab]."""
    mask = torch.ones_like(ids) if mask is None else mask
    out = model.generate(
        ids,
        attention_mask=mask,
        max_new_tokens=new,
        do_sample=False,
        output_logits=True,
        return_dict_in_generate=True,
        pad_token_id=0,
        **{cache_keyword(model): cache},
    )
    return out.sequences, torch.stack(out.logits, 1)


def _stock(model, ids, mask=None):
    return _generate(model, ids, DynamicCache(config=model.config), mask)


@pytest.mark.parametrize(("family", "kv_heads"), CASES)
def test_alpha_one_is_the_stock_cache(family, kv_heads, tmp_path):
    model = tiny(family, kv_heads=kv_heads)
    ids = _prompt(150)
    tokens, logits = _stock(model, ids)
    with HillInferCache(model, alpha=1, cold_dir=tmp_path, hot_bytes=HOT) as cache:
        ours, our_logits = _generate(model, ids, cache)
    assert torch.equal(tokens, ours)
    torch.testing.assert_close(our_logits, logits, atol=1e-3, rtol=0)


@pytest.mark.parametrize(("family", "kv_heads"), CASES)
def test_a_left_padded_batch_equals_its_members(family, kv_heads, tmp_path):
    model = tiny(family, kv_heads=kv_heads)
    prompts = [_prompt(n, seed=n) for n in (201, 64, 130)]
    batch = torch.zeros(3, 201, dtype=torch.long)
    mask = torch.zeros_like(batch)
    for row, prompt in enumerate(prompts):
        batch[row, 201 - prompt.shape[1] :] = prompt
        mask[row, 201 - prompt.shape[1] :] = 1
    for policy in (HillInfer(alpha=1), HillInfer(alpha=0.2, floor=8)):
        with HillInferCache(model, policy, cold_dir=tmp_path, hot_bytes=HOT) as cache:
            together, logits = _generate(model, batch, cache, mask)
        for row, prompt in enumerate(prompts):
            with HillInferCache(model, policy, cold_dir=tmp_path, hot_bytes=HOT) as cache:
                alone, alone_logits = _generate(model, prompt, cache)
            assert torch.equal(together[row, -NEW:], alone[0, -NEW:])
            torch.testing.assert_close(logits[row], alone_logits[0], atol=1e-3, rtol=0)


@pytest.mark.parametrize("family", ["llama", "gemma3", "opt"])
@pytest.mark.parametrize("policy", [HillInfer(alpha=1), HillInfer(alpha=0.2, floor=8, cold_margin=0)])
def test_every_prefill_chunk_gives_the_same(family, policy, tmp_path):
    model = tiny(family, kv_heads=4)
    ids = _prompt(200)
    expected = None
    for chunk in (1, 7, 64, 512):
        with HillInferCache(model, policy, cold_dir=tmp_path, hot_bytes=HOT) as cache:
            cache.prompt_length = ids.shape[1]
            with torch.inference_mode():
                for start in range(0, 199, chunk):
                    model(ids[:, start : min(199, start + chunk)], **{cache_keyword(model): cache})
            tokens, logits = _generate(model, ids, cache)
        if expected is None:
            expected = tokens, logits
        assert torch.equal(tokens, expected[0])
        torch.testing.assert_close(logits, expected[1], atol=1e-3, rtol=0)
    with HillInferCache(
        model, policy, cold_dir=tmp_path, hot_bytes=HOT
    ) as cache:  # the whole prompt in one call, by generate itself
        tokens, logits = _generate(model, ids, cache)
    assert torch.equal(tokens, expected[0])


def test_sliding_window_layers_keep_their_own_cache(tmp_path):
    model = tiny("gemma3")
    with HillInferCache(model, alpha=0.5, cold_dir=tmp_path, hot_bytes=HOT) as cache:
        _generate(model, _prompt(150), cache)
        assert cache.is_sliding == [True, False, True]
        assert cache.get_seq_length(1) == 150 + NEW - 1
        assert cache._engine.geometry.layers == 1


def test_a_conversation_goes_on_in_the_same_cache(tmp_path):
    model = tiny("llama")
    first, more = _prompt(100), _prompt(40, seed=1)
    with HillInferCache(model, alpha=1, cold_dir=tmp_path, hot_bytes=HOT) as cache:
        tokens, _ = _generate(model, first, cache)
        ours, logits = _generate(model, torch.cat([tokens, more], 1), cache)
    expected, expected_logits = _stock(model, torch.cat([tokens, more], 1))
    assert torch.equal(ours, expected)
    torch.testing.assert_close(logits, expected_logits, atol=1e-3, rtol=0)


def test_reset_leaves_nothing_behind(tmp_path):
    model = tiny("llama")
    with HillInferCache(model, HillInfer(alpha=0.2, floor=8), cold_dir=tmp_path, hot_bytes=HOT) as cache:
        first, _ = _generate(model, _prompt(150), cache)
        _generate(model, _prompt(90, seed=3), cache := _reset(cache))
        again, _ = _generate(model, _prompt(150), _reset(cache))
        assert torch.equal(first, again)
        batch = _prompt(80).expand(2, -1)
        both, _ = _generate(model, batch, _reset(cache))
        assert torch.equal(both[0], both[1])


def _reset(cache):
    cache.reset()
    assert cache.get_seq_length() == 0
    return cache


def test_other_caches_still_work_with_the_model(tmp_path):
    """A model that has been used with HillInfer is not spoiled for transformers' own caches."""
    for family in ("llama", "gemma3"):
        model, untouched = tiny(family), tiny(family)
        HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT)
        ids = _prompt(100)
        mask = torch.ones_like(ids)
        mask[:, :10] = 0
        for given in (None, mask):
            assert torch.equal(_stock(model, ids, given)[0], _stock(untouched, ids, given)[0])
        caches = [DynamicCache(config=m.config) for m in (model, untouched)]
        with torch.inference_mode():  # a second chunk, and no cache at all
            outs = []
            for m, cache in zip((model, untouched), caches, strict=True):
                m(ids[:, :60], **{cache_keyword(m): cache})
                outs.append((m(ids[:, 60:], **{cache_keyword(m): cache}).logits, m(ids, use_cache=False).logits))
        torch.testing.assert_close(outs[0], outs[1])


def test_numbers_add_up(tmp_path):
    model = tiny("llama")
    with HillInferCache(model, HillInfer(alpha=0.2, floor=8), cold_dir=tmp_path, hot_bytes=HOT) as cache:
        assert cache.stats().tiers.cold.bytes == 0
        _generate(model, _prompt(300), cache)
        stats = cache.stats()
        length = 300 + NEW - 1
        geometry = cache._engine.geometry
        newest = sum(len(work.stream.device_tier) for work in cache._engine._works.values())
        assert stats.tiers.cold.bytes + newest * geometry.row_bytes == geometry.kv_bytes(length, 1)
        assert stats.cold_read_bytes > 0
        assert 0 < stats.hot_hit_rate < 1
        scanned = stats.device_scan_bytes // geometry.score_key_bytes
        assert scanned == cache._engine.ledger.device_scored
        assert cache._engine.ledger.host_scored + scanned >= sum(300 + i for i in range(NEW - 1)) * geometry.layers


def test_a_dropped_cache_frees_its_files(tmp_path):
    model = tiny("llama")

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    threads, files = threading.active_count(), descriptors()
    cache = HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT)
    _generate(model, _prompt(150), cache)
    pool = weakref.ref(next(iter(cache._engine._works.values())).stream.hot_pool)
    assert descriptors() >= files + cache._engine.geometry.layers
    cache.close()
    assert descriptors() == files
    assert pool() is None
    with pytest.raises(SettingError, match="closed"):
        _generate(model, _prompt(150), cache)
    gc.disable()  # no cycle keeps it: dropping the last name is enough
    try:
        cache = HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT)
        _generate(model, _prompt(150), cache)
        del cache
        assert descriptors() == files
        assert threading.active_count() <= threads
    finally:
        gc.enable()


def test_models_it_cannot_serve(tmp_path):
    sliding = tiny("mistral", sliding_window=32)
    with pytest.raises(ModelError, match="no full-attention layer"):
        HillInferCache(sliding, cold_dir=tmp_path, hot_bytes=HOT)
    config = AutoConfig.for_model("mamba", hidden_size=32, num_hidden_layers=1, vocab_size=300, state_size=4)
    with pytest.raises(ModelError):
        HillInferCache(AutoModelForCausalLM.from_config(config), cold_dir=tmp_path, hot_bytes=HOT)
    small = {"d_model": 32, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "vocab_size": 300}
    encoder_decoder = transformers.T5ForConditionalGeneration(transformers.T5Config(**small))
    with pytest.raises(ModelError, match="encoder-decoder"):
        HillInferCache(encoder_decoder, cold_dir=tmp_path, hot_bytes=HOT)


def test_what_generate_may_not_ask_for(tmp_path):
    model = tiny("llama")
    ids = _prompt(80)
    with (
        HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT) as cache,
        pytest.raises(ModelError, match="num_beams=1"),
    ):
        model.generate(ids, num_beams=2, max_new_tokens=3, pad_token_id=0, **{cache_keyword(model): cache})
    with (
        HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT) as cache,
        torch.enable_grad(),
        pytest.raises(ModelError, match="inference only"),
    ):
        model(ids, **{cache_keyword(model): cache})
    with HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT) as cache, torch.inference_mode():
        model(ids, **{cache_keyword(model): cache})
        with pytest.raises(SettingError, match="batch of 1"):
            model(ids.expand(2, -1), **{cache_keyword(model): cache})


def test_a_model_whose_attention_was_switched_back_is_found_out(tmp_path):
    model = tiny("llama")
    with HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT) as cache, torch.inference_mode():
        model.set_attn_implementation("sdpa")
        with pytest.raises(ModelError, match="_attn_implementation"):
            _generate(model, _prompt(80), cache)


def test_settings_that_contradict(tmp_path):
    model = tiny("llama")
    with pytest.raises(SettingError, match="not both"):
        HillInferCache(model, HillInfer(), alpha=0.1)
    with pytest.raises(SettingError, match="512MiB"):
        HillInferCache(model, hot_bytes="plenty")
    with pytest.raises(SettingError, match="above 0 and at most 1"):
        HillInferCache(model, alpha=7)
    assert not list(tmp_path.iterdir())


def _boom(*_args, **_kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("family", ["llama", "gemma3"])
@pytest.mark.parametrize("where", ["between layers", "in a layer", "behind the last layer"])
def test_a_step_cut_short_is_never_gone_on_with(family, where, tmp_path, monkeypatch):
    """Some layers hold a token that others lack: an error, and after reset all is well."""
    model = tiny(family)
    ids = _prompt(200)
    expected, _ = _stock(model, ids)
    with HillInferCache(model, alpha=1, cold_dir=tmp_path, hot_bytes=HOT) as cache:
        _generate(model, ids, cache)
        with monkeypatch.context() as patch:
            if where == "between layers":
                patch.setattr(model.model.layers[-2].mlp, "forward", _boom)
            elif where == "in a layer":
                stream = type(next(iter(cache._engine._works.values())).stream)
                patch.setattr(stream, "append", _boom)
            else:
                patch.setattr(model.lm_head, "forward", _boom)
            with pytest.raises(KeyboardInterrupt), torch.inference_mode():
                model(ids[:, :1], **{cache_keyword(model): cache})
        if where == "behind the last layer":  # every layer has the token: the cache is whole
            return
        for _ in range(3):
            with pytest.raises(HillInferError, match=r"did not finish.*reset"), torch.inference_mode():
                model(ids[:, :1], **{cache_keyword(model): cache})
        cache.reset()
        tokens, _ = _generate(model, ids, cache)
        assert torch.equal(tokens, expected)


def test_a_mask_that_changes_its_mind_is_refused(tmp_path):
    model = tiny("llama")
    ids = _prompt(100)
    mask = torch.ones_like(ids)
    mask[:, :10] = 0
    for first, second in [(None, mask), (mask, None), (mask, torch.ones_like(mask))]:
        with HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT) as cache, torch.inference_mode():
            model(
                ids[:, :60], attention_mask=first if first is None else first[:, :60], **{cache_keyword(model): cache}
            )
            with pytest.raises(ModelError, match="already cached"):
                model(ids[:, 60:], attention_mask=second, **{cache_keyword(model): cache})


def test_a_cache_of_fixed_size_still_works_with_the_model(tmp_path):
    model, untouched = tiny("llama"), tiny("llama")
    HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT)
    ids = _prompt(60)
    mask = torch.ones_like(ids)
    mask[:, :10] = 0
    for given in (torch.ones_like(ids), mask):
        outs = [
            m.generate(
                ids,
                attention_mask=given,
                max_new_tokens=8,
                do_sample=False,
                pad_token_id=0,
                cache_implementation="static",
            )
            for m in (model, untouched)
        ]
        assert torch.equal(*outs)


def test_one_dtype(tmp_path):
    model = tiny("llama")
    with (
        HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT) as cache,
        torch.inference_mode(),
        torch.autocast("cpu", torch.bfloat16),
        pytest.raises(ModelError, match="without autocast"),
    ):
        model(_prompt(80), **{cache_keyword(model): cache})


def test_budgets_are_checked_again_as_the_context_grows(tmp_path):
    model = tiny("llama")
    ids = _prompt(3000)
    with HillInferCache(model, alpha=0.5, hot_bytes=300_000, cold_dir=tmp_path) as cache, torch.inference_mode():
        model(ids[:, :1000], **{cache_keyword(model): cache})
        with pytest.raises(MemoryBudgetError, match="the least that works here"):
            model(ids[:, 1000:], **{cache_keyword(model): cache})


def test_a_prompt_ending_in_a_chunk_of_one_token(tmp_path):
    model = tiny("llama")
    ids = _prompt(129)
    expected, _ = _stock(model, ids)
    with (
        HillInferCache(model, HillInfer(alpha=1), cold_dir=tmp_path, hot_bytes=HOT, prompt_length=129) as cache,
        torch.inference_mode(),
    ):
        for start in range(0, 129, 64):
            out = model(ids[:, start : start + 64], **{cache_keyword(model): cache})
    assert out.logits[0, -1].argmax() == expected[0, 129]


def test_masks_that_models_make_themselves(tmp_path):
    """Causal with padding, as bools or as numbers to add: fine. Anything else would be attended wrongly: refused."""
    model = tiny("llama")
    ids = _prompt(40)
    padding = torch.ones(1, 40, dtype=torch.bool)
    padding[:, :6] = False
    allowed = (torch.ones(40, 40, dtype=torch.bool).tril() & padding[:, None, None]).contiguous()
    added = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
    outs = []
    for mask in (padding.long(), allowed, added):
        with HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT) as cache, torch.inference_mode():
            outs.append(model(ids, attention_mask=mask, **{cache_keyword(model): cache}).logits[:, 6:])
    torch.testing.assert_close(outs[1], outs[0])
    torch.testing.assert_close(outs[2], outs[0])
    prefix = allowed.clone()
    prefix[..., 10, 20] = True
    with (
        HillInferCache(model, cold_dir=tmp_path, hot_bytes=HOT) as cache,
        torch.inference_mode(),
        pytest.raises(ModelError, match="causal masks"),
    ):
        model(ids, attention_mask=prefix, **{cache_keyword(model): cache})


def test_the_least_that_works_works(tmp_path):
    """The figure in the error is good for the whole run, not only for getting past the first check."""
    model = tiny("llama")
    ids = _prompt(3000)
    cache = HillInferCache(model, alpha=0.5, hot_bytes=1000, cold_dir=tmp_path)
    with cache, pytest.raises(MemoryBudgetError) as caught:
        cache.expect(3000 + NEW)
    least = int(str(caught.value).rsplit(" ", 1)[1].rstrip(")"))
    with HillInferCache(model, alpha=0.5, hot_bytes=least, cold_dir=tmp_path) as cache:
        cache.expect(3000 + NEW)
        _generate(model, ids, cache)
        assert cache.stats().tiers.hot.peak_bytes <= least
