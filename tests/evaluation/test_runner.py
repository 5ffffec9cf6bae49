"""An evaluation as a whole, on a tiny model: what is in the file, and that a run that died goes on as if it had not."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch

from hillinfer.errors import DocumentError, SettingError
from hillinfer.evaluation.contender import parse_contenders
from hillinfer.evaluation.results import Results
from hillinfer.evaluation.runner import Evaluation
from hillinfer.evaluation.task import Asking, Item, Task
from tests.tiny import tiny, tiny_tokenizer

MODEL, TOKENIZER = tiny("llama"), tiny_tokenizer()


class Made(Task):
    """Items of random tokens: some say something, one was cut."""

    name = "made"
    source = "this test"
    retrieval = True

    def items(self, asking: Asking) -> Iterator[Item]:
        drawn = torch.Generator().manual_seed(asking.seed)
        start = torch.randint(5, 250, (1100,), generator=drawn)
        for context in asking.lengths:
            for number in range(asking.limit or 3):
                prompt = torch.cat([start[: context - 50], torch.randint(5, 250, (44,), generator=drawn)])
                answer = torch.randint(5, 250, (6,), generator=drawn)
                labels, cut = {"depth": number / 2}, 7 * (number == 0)
                yield Item(f"{context}/{number}", context, prompt, answer, ["x"], 4, labels, cut)

    def score(self, item: Item, said: str) -> float:
        return (len(said) + len(item.references)) % 3 / 2


class Said(Made):
    name = "text"

    def items(self, asking: Asking) -> Iterator[Item]:
        for item in super().items(asking):
            yield Item(item.identity, item.context, item.prompt, item.answer)


class Stopped(Exception):
    pass


def evaluate(
    folder: Path,
    policies: str = "hillinfer@20%,streaming-llm@20%,heterocache@50%",
    *,
    seed: int = 0,
    tasks: Any = (Made, Said),
    stop_after: int | None = None,
    settings: Any = None,
    model_files: str = "",
) -> Results:
    calls = 0

    def progress(done: int, total: int, doing: str) -> None:
        nonlocal calls
        assert 0 <= done <= total
        assert doing
        calls += 1
        if stop_after is not None and calls > stop_after:
            raise Stopped

    evaluation = Evaluation(
        MODEL, TOKENIZER, "tiny", seed, parse_contenders(policies, {}), settings or {}, folder, progress
    )
    try:
        asking = Asking(TOKENIZER, [300, 1100], seed=seed)
        return evaluation.run(evaluation.work([(task(), asking) for task in tasks]), folder / "journal", model_files)
    finally:
        evaluation.close()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return evaluate(tmp_path_factory.mktemp("whole"))


def test_rows(results: Results) -> None:
    assert [(row.task, row.context, row.contender) for row in results.rows] == [
        (task, context, contender)
        for task in ("made", "text")
        for context in (300, 1100)
        for contender in ("full", "hillinfer@20%", "streaming-llm@20%", "heterocache@50%")
    ]
    full, ours, streaming, hetero, *_ = results.rows
    assert "head profile" in hetero.note
    assert hetero.score is None
    assert (full.score, full.difference, full.nll_difference, full.kl) == (full.full_score, 0, 0, 0)
    assert full.items == 3
    assert full.cut == 1
    assert full.counts == (full.score >= 0.5)
    assert full.retrieval
    assert full.by_label["depth"].keys() == {"0", "0.5", "1"}
    assert ours.kl > 0
    assert ours.nll - full.nll == pytest.approx(ours.nll_difference)
    assert ours.nll_interval[0] <= ours.nll_difference <= ours.nll_interval[1]
    assert streaming.device_bytes < full.device_bytes
    assert ours.cold_bytes > 0
    text = next(row for row in results.rows if row.task == "text")
    assert (text.score, text.difference, text.interval, text.counts) == (None, None, None, False)


def test_everything_attended_is_the_full_cache(tmp_path: Path) -> None:
    results = evaluate(tmp_path, "hillinfer@100%,streaming-llm@100%", tasks=[Made])
    for item in results.items:
        full, *others = item.runs
        for run in others:
            assert run.said == full.said
            assert run.nll == pytest.approx(full.nll, abs=1e-3)
            assert run.kl < 1e-5


@pytest.mark.parametrize("stop_after", [1, 5, 8])
def test_a_run_that_died_goes_on_to_the_same_result(results: Results, tmp_path: Path, stop_after: int) -> None:
    with pytest.raises(Stopped):
        evaluate(tmp_path, stop_after=stop_after)
    journal = tmp_path / "journal"
    lines = journal.read_bytes()
    assert lines.count(b"\n") == stop_after + 1  # the first says what run this is
    journal.write_bytes(lines + b'{"task": "made", "context"')  # it died within a line
    assert evaluate(tmp_path) == results


def test_another_evaluation_does_not_go_on_from_there(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        evaluate(tmp_path, stop_after=2)
    with pytest.raises(SettingError, match="with other seed"):
        evaluate(tmp_path, seed=1)
    with pytest.raises(SettingError, match="with other settings"):
        evaluate(tmp_path, settings={"lengths": 5})
    with pytest.raises(SettingError, match="other texts or data"):
        evaluate(tmp_path, tasks=[Said])
    for damaged in ("no JSON\n", "5\n", "[1]\n"):
        (tmp_path / "journal").write_text(damaged)
        with pytest.raises(SettingError, match="damaged"):
            evaluate(tmp_path)


def test_another_seed_gives_other_items(results: Results, tmp_path: Path) -> None:
    other = evaluate(tmp_path, seed=1, tasks=[Made])
    assert {item.prompt for item in results.items}.isdisjoint(item.prompt for item in other.items)


def test_prompts_longer_than_the_model_and_no_prompts_are_refused(tmp_path: Path) -> None:
    evaluation = Evaluation(MODEL, TOKENIZER, "tiny", 0, [], {}, tmp_path, lambda *_: None)
    with pytest.raises(SettingError, match="made 4098/0 has 4097 tokens, more than the model's context of 4096"):
        evaluation.work([(Long(), Asking(TOKENIZER, [4098]))])
    with pytest.raises(DocumentError, match="no items"):
        evaluation.work([(Made(), Asking(TOKENIZER, []))])


class Long(Made):
    def items(self, asking: Asking) -> Iterator[Item]:
        for context in asking.lengths:
            yield Item(f"{context}/0", context, torch.full((context - 1,), 7), torch.tensor([7]))


class Uneven(Made):
    """Items of a data set: far shorter than their context, but for some."""

    def items(self, asking: Asking) -> Iterator[Item]:
        for number, tokens in enumerate(asking.lengths):
            yield Item(str(number), 4000, torch.arange(5, 5 + tokens) % 200 + 5, torch.tensor([7, 8]), ["x"], 2)


class Short(Uneven):
    name = "short"

    def items(self, asking: Asking) -> Iterator[Item]:
        yield from super().items(Asking(asking.tokenizer, [30]))


def test_an_item_too_short_for_a_budget_is_left_out_and_told(tmp_path: Path) -> None:
    contenders = parse_contenders("h2o@0.1%,streaming-llm@50%", {})
    evaluation = Evaluation(MODEL, TOKENIZER, "tiny", 0, contenders, {}, tmp_path, lambda *_: None)
    try:
        work = evaluation.work([(Uneven(), Asking(TOKENIZER, [40, 3000, 50])), (Short(), Asking(TOKENIZER, []))])
        rows = evaluation.run(work, tmp_path / "journal").rows
    finally:
        evaluation.close()
    assert [(row.task, row.contender, row.items) for row in rows] == [
        *(("made", "full", 3), ("made", "streaming-llm@50%", 3), ("made", "h2o@0.1%", 1)),
        *(("short", "full", 1), ("short", "streaming-llm@50%", 1), ("short", "h2o@0.1%", 0)),
    ]
    assert rows[2].note.startswith("on 2 of 3 items: a budget of 0.1% allows 1 tokens, and h2o needs at least 2")
    assert rows[5].note.startswith("a budget of 0.1% allows 1 tokens, and h2o needs at least 2")
    assert not rows[1].note


class Changed(Made):
    """The same prompts and answers, with one thing changed that scores depend on."""

    change: ClassVar[dict[str, Any]]

    def items(self, asking: Asking) -> Iterator[Item]:
        for item in super().items(asking):
            yield dataclasses.replace(item, **self.change)


@pytest.mark.parametrize(
    "change",
    [{"references": ["y"]}, {"choices": [torch.tensor([7]), torch.tensor([8])]}, {"new_tokens": 5}, {"labels": {}}],
)
def test_other_answers_to_the_same_prompts_are_other_data(tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(Stopped):
        evaluate(tmp_path, stop_after=2)
    task = type("Other", (Changed,), {"change": change})
    with pytest.raises(SettingError, match="other texts or data"):
        evaluate(tmp_path, tasks=[task, Said])


def test_other_weights_are_another_run(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        evaluate(tmp_path, stop_after=2, model_files="some")
    with pytest.raises(SettingError, match="with other model files"):
        evaluate(tmp_path, model_files="others")


def test_data_that_became_fewer_is_other_data(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        evaluate(tmp_path, stop_after=8)
    with pytest.raises(SettingError, match="other texts or data"):
        evaluate(tmp_path, tasks=[Made])


def test_results_are_json(results: Results) -> None:
    assert Results.model_validate(json.loads(results.model_dump_json())) == results
