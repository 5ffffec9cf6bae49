"""The four tasks under our runner: every policy's accuracy is what plain torch says of the likelihoods."""

from __future__ import annotations

from pathlib import Path

import pytest

from hillinfer.evaluation import registry
from hillinfer.evaluation.contender import parse_contenders
from hillinfer.evaluation.harness.encoding import encode_pair
from hillinfer.evaluation.runner import Evaluation
from hillinfer.evaluation.task import Asking
from tests.evaluation.harness.made_up import REQUESTS
from tests.evaluation.harness.test_model import TOKENIZER, VOCAB, plain
from tests.tiny import tiny


def test_choices_are_judged_by_their_likelihoods(data: Path, tmp_path: Path) -> None:
    model = tiny(vocab_size=VOCAB)
    contenders = parse_contenders("hillinfer@100%,h2o@20%", {})
    evaluation = Evaluation(model, TOKENIZER, "tiny", 0, contenders, {}, tmp_path, lambda *_: None)
    try:
        work = evaluation.work([(registry.find("harness")(), Asking(TOKENIZER, (2048,), 1, data=data))])
        items = evaluation.run(work, tmp_path / "journal").items
    finally:
        evaluation.close()
    for item, (context, choices, gold) in zip(items, REQUESTS.values(), strict=True):
        pairs = [encode_pair(TOKENIZER, context, choice) for choice in choices]
        likely = [plain(model, *pair)[0] for pair in pairs]
        full, ours, dropped = item.runs
        for run in (full, ours):
            assert run.score == float(likely.index(max(likely)) == gold)
            assert run.nll == pytest.approx(-likely[gold] / len(pairs[gold][1]), abs=1e-3)
            assert run.said == ""
        assert dropped.kl > 0.01
