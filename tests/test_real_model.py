"""The real default model on real text: α = 1 is the stock cache, token for token and logit for logit."""

from __future__ import annotations

import pytest
import torch
from transformers import DynamicCache

from hillinfer import HillInferCache
from hillinfer.documents import default_document
from hillinfer.generation import cache_keyword
from hillinfer.models import load

pytestmark = pytest.mark.real

PROMPT, NEW = 600, 32


@pytest.fixture(scope="module")
def loaded():
    return load(None)


@pytest.mark.parametrize("start", [0, 20_000, 60_000])
def test_alpha_one_is_the_stock_cache(loaded, start, tmp_path):
    text = default_document(loaded.tokenizer, tokens=start + PROMPT)
    ids = loaded.tokenizer(text, return_tensors="pt", verbose=False)["input_ids"][:, start : start + PROMPT]
    model = loaded.model

    def run(cache):
        out = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=NEW,
            min_new_tokens=NEW,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
            **{cache_keyword(model): cache},
        )
        return out.sequences, torch.stack(out.logits, 1)

    tokens, logits = run(DynamicCache(config=model.config))
    with HillInferCache(model, alpha=1, cold_dir=tmp_path) as cache:
        ours, our_logits = run(cache)
    assert torch.equal(ours, tokens)
    torch.testing.assert_close(our_logits, logits, atol=1e-3, rtol=0)
