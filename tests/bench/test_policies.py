"""The comparison of policies on a tiny model: what it compares, not how well they do."""

import json

import torch

from hillinfer.bench import policies
from hillinfer.evaluation.task import Item
from tests.tiny import tiny


def test_rows(tmp_path):
    model, seen = tiny("llama"), []
    text = torch.arange(5, 700)[None] % 290 + 5
    hidden = Item("", 300, text[0, :295], text[0, 295:300], labels={"depth": 0.5})
    task = policies.Task(300, [text[:, :300]], 8, [hidden])
    chosen = {name: {} for name in ("hillinfer", "streaming-llm", "quest")}
    rows = policies.Comparison(model, chosen, [0.5, 1.0], tmp_path, seen.append).run(task)
    assert [(row.policy, row.budget) for row in rows] == [
        ("full", 1.0),
        *((name, budget) for budget in (0.5, 1.0) for name in chosen),
    ]
    full, _, streaming, *_ = rows
    assert full.kl == full.nll_delta == 0
    assert full.agreement == 1
    assert full.device_bytes == 2 * 2 * 2 * 16 * 4 * 299
    assert streaming.drops
    assert streaming.fast_bytes < 0.6 * full.fast_bytes
    assert all(row.kl < 1e-5 and row.agreement == 1 for row in rows if row.budget == 1)
    assert all(row.passkey == full.passkey for row in rows if row.budget == 1)
    assert all(row.kl > 1e-5 for row in rows[1:3])  # both layers of this model are dense under Quest
    assert len(json.loads(json.dumps(policies.as_dict(rows, {})))["rows"]) == 7
    assert policies.best(rows, 300, 2.0).kl < 1e-5


def test_a_policy_that_cannot_have_a_budget_says_why(tmp_path):
    text = torch.arange(5, 700)[None, :300] % 290 + 5
    run = policies.Comparison(tiny("llama"), {"streaming-llm": {}}, [0.001], tmp_path, lambda _: None).run
    _, row = run(policies.Task(300, [text], 2, []))
    assert row.kl is None
    assert "streaming-llm needs at least" in row.note
