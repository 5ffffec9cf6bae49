"""The comparison of scoring copies on a tiny model: what it compares, not how well they do."""

import json

import torch

from hillinfer.bench import copies
from tests.tiny import tiny


def test_rows(tmp_path):
    text = torch.arange(5, 700)[None, :420] % 290 + 5
    texts = {"a": text, "b": text.flip(1)}
    rows = copies.compare(
        tiny("llama"), "tiny", texts, 4, ["int8", "int4", "projected/2"], [0.3, 1.0], tmp_path, lambda _: None
    )
    assert [(row.copy, row.alpha) for row in rows] == [
        (copy, alpha) for copy in ("int8", "int4", "projected/2", copies.RAW) for alpha in (0.3, 1.0)
    ]
    assert all(row.kl < 1e-5 for row in rows if row.alpha == 1)
    assert [row.kv_share for row in rows[:5:2]] == [0.25, 0.125, 0.0625]
    assert all(row.kl_of_text.keys() == texts.keys() for row in rows)
    assert json.loads(json.dumps(copies.as_dict(rows, {"steps": 4})))["benchmark"] == "copies"
