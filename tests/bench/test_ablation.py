"""The ablation on a tiny model; rows that stay by last use change no result."""

from __future__ import annotations

import torch

from hillinfer.bench import ablation
from hillinfer.bench.steps import STOCK
from hillinfer.config import Budget, StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.integrations.transformers import HillInferCache
from hillinfer.policies import HillInfer
from tests.tiny import tiny

TEXT = torch.arange(5, 1000) % 290 + 5


def test_rows(tmp_path) -> None:
    chosen = ablation.variants("40%", tmp_path)
    rows = ablation.run(tiny(), TEXT, 500, 0.1, chosen, lambda _: None)
    assert [row.label for row in rows] == [STOCK, *chosen]
    assert rows[0].times_stock == 1
    assert all(0 < row.hot_hit_rate < 1 for row in rows[1:])
    assert rows[1].moved_fraction == 0, "guests come and go, and nobody else is there"
    assert len(ablation.as_dict(rows, {})["rows"]) == len(rows)


def test_what_stays_in_the_pool_changes_no_result(tmp_path) -> None:
    model, found = tiny(), []
    keyword = cache_keyword(model)
    for placement in ("history", "last-use"):
        store = StoreSettings(hot_bytes=Budget.parse("30%"), cold_dir=tmp_path, placement=placement)
        with HillInferCache(model, HillInfer(cold_margin=0), store=store) as cache, torch.inference_mode():
            logits = [model(TEXT[None, :400], **{keyword: cache}).logits[0, -1]]
            for position in range(400, 500):
                logits.append(model(TEXT[None, position : position + 1], **{keyword: cache}).logits[0, -1])
            found.append(torch.stack(logits))
            hot = cache.stats().tiers.hot
        assert hot.peak_bytes <= 0.3 * 2 * 500 * 2 * 2 * 16 * 4
    assert torch.equal(*found)
