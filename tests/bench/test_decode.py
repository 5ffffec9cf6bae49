"""The decode benchmark on a tiny model: what it compares, not how fast."""

import torch

from hillinfer.bench import decode
from hillinfer.policies import HillInfer
from tests.tiny import tiny


def test_rows_and_summary(tmp_path):
    model = tiny("llama")
    texts = decode.passages(torch.arange(5, 1000) % 290 + 5, 300, 2)
    assert [int(text[0, 0]) for text in texts] == [10, (5 + 695) % 290 + 5]
    cases = [*decode.cases(0.1), decode.Case("all", HillInfer(alpha=1), "102%")]
    seen = []
    rows = decode.compare(model, texts, 8, cases, tmp_path, seen.append)
    assert [row.label for row in rows] == [case.label for case in cases]
    assert rows[0].kl == 0
    assert rows[0].agreement == 1
    assert rows[-1].kl < 1e-6
    assert rows[1].kl > 1e-6
    assert rows[1].cold_bytes > 0
    assert len(seen) == 12
    result = decode.as_dict(rows, {"tokens": 300})
    assert result["summary"]["kl_over_raw_sum"] == rows[1].kl / rows[2].kl
