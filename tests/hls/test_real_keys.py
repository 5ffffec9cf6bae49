"""Keys of the real default model: the kernel scores from FP16 what the host scores from its INT8 or INT4 copy."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from hillinfer.csd.abi import Layout
from hillinfer.documents import default_document
from hillinfer.generation import cache_keyword
from hillinfer.kv.keys import cast_keys
from hillinfer.kv.query import quantise_query
from hillinfer.kv.scoring import pack, score
from hillinfer.models import load
from tests.hls.cases import Case

pytestmark = pytest.mark.real

TOKENS = 1300


@pytest.fixture(scope="module")
def captured():
    """Keys [H, n, d] of some layers after a real document, and the attention's scaling."""
    loaded = load(None)
    text = default_document(loaded.tokenizer, tokens=TOKENS)
    ids = loaded.tokenizer(text, return_tensors="pt", verbose=False)["input_ids"][:, :TOKENS]
    cache = DynamicCache(config=loaded.model.config)
    with torch.no_grad():
        loaded.model(ids, **{cache_keyword(loaded.model): cache})
    layers = (0, len(cache.layers) // 2, len(cache.layers) - 1)
    config = loaded.model.config
    return [cache.layers[i].keys[0].float() for i in layers], config.num_attention_heads // config.num_key_value_heads


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("format", ["int8", "int4"])
def test_real_keys_score_alike_from_fp16_and_from_the_scoring_copy(library, captured, format, normalised):
    layers, group = captured
    for keys in layers:
        heads, tokens, dim = keys.shape
        cast = cast_keys(keys, format)
        # The last keys, turned a little, stand for queries: they are as large and as correlated as queries are.
        last = keys[:, -group:].roll(1, dims=-1).numpy()
        normaliser = np.full((heads, group), 3.0, np.float32) if normalised else None
        reduce = "max" if normalised else "sum"
        query = quantise_query(last, dim**-0.5, normaliser, cast.exponents.min(0), reduce)

        half = keys.to(torch.float16).transpose(0, 1).contiguous().numpy()
        on_the_fly = Case(Layout(f"fp16_{format}", heads, group, dim), half.view(np.uint16), cast.exponents, query)
        stored = Case(Layout(format, heads, group, dim), cast.integers, cast.exponents, query)
        assert on_the_fly.run(library) == stored.run(library) == stored.expected() == on_the_fly.expected()

        scores = stored.scores()
        assert len(np.unique(scores)) > 30  # they rank, they are not all alike or saturated
        np.testing.assert_array_equal(score(pack(cast.integers), cast.exponents, query)[:tokens], scores)
