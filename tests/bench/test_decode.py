"""The decode benchmark on a tiny model: what it compares, not how fast."""

from __future__ import annotations

import json

import pytest
import torch

from hillinfer.bench import decode, prefill, quality, steps
from hillinfer.bench.preallocated import ATTENTION, preallocated_cache
from hillinfer.bench.synthetic import lengthen
from hillinfer.bench.texts import passages
from hillinfer.generation import cache_keyword
from tests.tiny import CASES, tiny

TEXT = torch.arange(5, 1000) % 290 + 5


def test_passages_are_spread_over_the_text() -> None:
    assert [int(text[0, 0]) for text in passages(TEXT, 300, 2)] == [10, (5 + 695) % 290 + 5]


def test_quality(tmp_path) -> None:
    chosen = [*quality.methods(0.1), quality.Method("all", quality.HillInfer(alpha=1))]
    rows = quality.compare(tiny(), passages(TEXT, 300, 2), 8, chosen, "20%", tmp_path, lambda _: None)
    assert [row.label for row in rows] == [method.label for method in chosen]
    assert rows[-1].kl < 1e-6
    assert rows[-1].agreement == 1
    assert all(row.kl > 1e-6 and row.cold_bytes > 0 for row in rows[:-1])


def test_prefill(tmp_path) -> None:
    stock, ours = prefill.compare(tiny(), TEXT[None, :601], 0.1, "20%", tmp_path, lambda _: None)
    assert stock.tokens == ours.tokens == 600
    assert 0 < stock.seconds < stock.first_token_s
    assert stock.keeping_s == 0 < ours.keeping_s < ours.seconds


def test_the_whole_benchmark(tmp_path) -> None:
    plan = decode.Plan(contexts=(128, 64), synthetic=(256,), alphas=(1.0, 0.1), tokens=200, decoded=4, passages=1)
    seen: list[str] = []
    result = decode.run(tiny(), TEXT, plan, tmp_path, seen.append)
    measured = [row for row in result.speed if row.ms is not None]
    assert {row.context for row in measured} == {64, 128, 256}
    assert all(row.ratio == 1 for row in measured if row.label == steps.STOCK)
    assert all(row.added_ms is None for row in measured if row.context == 64)
    assert all(row.note for row in result.speed if row.ms is None)
    assert [row.context for row in result.speed if row.synthetic] == [256] * 6
    assert seen
    written = json.loads(json.dumps(decode.as_dict(result, plan, {"model": "tiny"})))
    assert set(written["summary"].values()) == {None}, "of no figure is this the context"


def test_the_bounds_of_a_run() -> None:
    plan = decode.Plan()
    ours = steps.ours(plan.alpha).label
    result = decode.Result(
        [
            steps.StepRow(8192, label, synthetic=False, ms=ms, ratio=ms / 100)
            for label, ms in ((steps.STOCK, 100.0), (ours, 60.0), (steps.FLOOR, 50.0))
        ],
        prefill=[prefill.PrefillRow("stock", 8191, 10, 1, 1), prefill.PrefillRow(ours, 8191, 12, 1, 1, keeping_s=2)],
    )
    found = decode.bounds(result, plan)
    assert found.keys() == {"decode_8k_ratio", "prefill_8k_ratio"}
    assert (found["decode_8k_ratio"].value, found["decode_8k_ratio"].distance) == (0.5, 1.2)
    assert (found["prefill_8k_ratio"].value, found["prefill_8k_ratio"].distance) == (1.2, 1)
    assert decode.summary(result, plan)["decode_8k_over_floor"] == 1.2


@pytest.mark.parametrize(("family", "kv_heads"), [case for case in CASES if case[0] in ("llama", "gemma3")])
def test_the_preallocated_cache_attends_as_the_stock_one(family: str, kv_heads: int) -> None:
    model = tiny(family, kv_heads)
    stock, ours = steps.stock_caches.dynamic(model), preallocated_cache(model, 60)
    keyword = cache_keyword(model)
    with torch.inference_mode():
        for part in TEXT[None, :60].split([40, 1, 1, 18], 1):
            model.set_attn_implementation("sdpa")
            expected = model(part, **{keyword: stock}).logits
            model.set_attn_implementation(ATTENTION)
            torch.testing.assert_close(model(part, **{keyword: ours}).logits, expected, atol=2e-4, rtol=1e-4)


def test_a_synthetic_context_has_the_length_that_was_asked_for() -> None:
    model = tiny()
    cache = steps.stock_caches.dynamic(model)
    for tokens in (100, 2500):
        lengthen(cache, model, tokens)
        assert {layer.keys.shape[2] for layer in cache.layers} == {tokens}
        assert cache.layers[0].keys.std() > 1
