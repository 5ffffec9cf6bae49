"""A profile measured on a tiny model, against transformers' own attention weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from hillinfer.errors import DocumentError, ModelError, SettingError
from hillinfer.generation import cache_keyword
from hillinfer.profiling.measure import AnalysisSettings, measure
from tests.tiny import random_ids, tiny

TOKENS, STEPS, TOP_K = 120, 11, 20


def _rows(model, ids, kv_heads):
    """Softmax rows [L, H, G, N] of the prompt's last token and of each step, from eager attention in full."""
    model.set_attn_implementation("eager")
    cache = DynamicCache(config=model.config)
    steps = []
    with torch.inference_mode():
        out = model(ids, output_attentions=True, **{cache_keyword(model): cache})
        for _ in range(STEPS + 1):
            rows = torch.stack([weights[0, :, -1, :TOKENS] for weights in out.attentions])
            rows = rows / rows.sum(-1, keepdim=True)  # over the prompt alone
            steps.append(rows.unflatten(1, (kv_heads, -1)))
            out = model(out.logits[:, -1:].argmax(-1), output_attentions=True, **{cache_keyword(model): cache})
    return steps


def _sets(rows):
    """{layer: [set per head]} by sorting sums of five neighbours."""
    mean = rows.mean(2).numpy()
    padded = np.pad(mean, ((0, 0), (0, 0), (2, 2)))
    scores = sum(padded[..., i : i + TOKENS] for i in range(5))
    return [[set(np.argsort(head, kind="stable")[-TOP_K:].tolist()) for head in layer] for layer in scores]


@pytest.mark.parametrize(("family", "kv_heads"), [("llama", 2), ("qwen3", 4), ("opt", 4)])
def test_the_numbers_are_those_of_full_attention(family, kv_heads):
    model, ids = tiny(family, kv_heads), random_ids(TOKENS)
    sets = [_sets(rows) for rows in _rows(model, ids, kv_heads)]
    reference, later = sets[0], sets[1:]
    seen = []
    profile = measure(
        model, ids, AnalysisSettings(steps=STEPS, top_k=TOP_K), prefill_chunk=50, on_step=lambda *at: seen.append(at)
    )
    assert seen == [(step, STEPS) for step in range(1, STEPS + 1)]
    for layer in range(2):
        heads = range(kv_heads)
        overlap = [[[len(s[layer][h] & s[layer][o]) / TOP_K for o in heads] for h in heads] for s in later]
        stable = [[len(s[layer][h] & reference[layer][h]) / TOP_K for h in heads] for s in later]
        np.testing.assert_allclose(profile.stability[layer], np.median(stable, 0), atol=1e-6)
        np.testing.assert_allclose(profile.overlap[layer], np.median(overlap, 0), atol=1e-6)
        best = np.where(np.eye(kv_heads), 0, overlap).max(-1)
        np.testing.assert_allclose(profile.similarity[layer], np.median(best, 0), atol=1e-6)
    last = measure(model, ids, AnalysisSettings(steps=STEPS, top_k=TOP_K, at_step=-1), name="mine")
    expected = [[[len(a & b) / TOP_K for b in layer] for a in layer] for layer in later[-1]]
    np.testing.assert_allclose(last.overlap, expected, atol=1e-6)
    assert last.model.name == "mine"
    assert last.model.difference(profile.model) is None
    assert last.origin["settings"] == {"steps": STEPS, "top_k": TOP_K, "kernel": 5, "edges": "step -1"}
    assert set(last.origin["versions"]) == {"hillinfer", "torch", "transformers"}


def test_only_layers_with_full_attention_are_profiled():
    model = tiny("gemma3", kv_heads=2)
    profile = measure(model, random_ids(100), AnalysisSettings(steps=3, top_k=10))
    assert profile.model.layers == (1,)
    assert profile.stability.shape == (1, 2)


def test_what_cannot_be_profiled():
    with pytest.raises(ModelError, match="one KV head per layer"):
        measure(tiny("llama", kv_heads=1), random_ids(100), AnalysisSettings(steps=3, top_k=10))
    with pytest.raises(DocumentError, match="longer text"):
        measure(tiny("llama"), random_ids(100), AnalysisSettings(steps=3))
    for wrong in ({"steps": 0}, {"top_k": 0}, {"kernel": 2}, {"at_step": 100}, {"tau_stable": 2.0}):
        with pytest.raises(SettingError):
            AnalysisSettings(**wrong)
