"""The four tasks on files in their official formats."""

import json
import sys
from pathlib import Path

import pytest

from hillinfer.errors import DocumentError, SettingError
from hillinfer.evaluation import registry
from hillinfer.evaluation.harness import tasks
from hillinfer.evaluation.task import Asking
from tests.evaluation.harness.made_up import RECORDS, REQUESTS
from tests.tiny import tiny_tokenizer

TOKENIZER = tiny_tokenizer()


@pytest.mark.parametrize("name", REQUESTS)
def test_documents_become_items(data: Path, name: str) -> None:
    task = registry.find(f"harness/{name}")()
    first, second = task.items(Asking(TOKENIZER, (2048,), data=data))
    context, choices, gold = REQUESTS[name]
    assert TOKENIZER.decode(first.prompt) == context
    assert [TOKENIZER.decode(choice) for choice in first.choices] == choices
    assert TOKENIZER.decode(first.answer) == choices[gold]
    assert (first.identity, second.identity, first.new_tokens) == (f"{name}/0", f"{name}/1", 0)
    assert first.context == len(first.prompt) + max(map(len, first.choices))
    for number in range(len(choices)):
        likely = [-2.0 + (each == number) for each in range(len(choices))]
        assert task.choose(first, likely) == (number == gold)


def test_the_limit_and_all_four(data: Path) -> None:
    items = list(registry.find("harness")().items(Asking(TOKENIZER, (2048,), 1, data=data)))
    assert [item.labels["subset"] for item in items] == list(REQUESTS)
    assert registry.parts("harness") == [f"harness/{name}" for name in REQUESTS]


def test_missing_data_says_how_to_get_it(tmp_path: Path) -> None:
    command = r"hf download --repo-type dataset aps/super_glue --include 'copa/\*' --local-dir data/harness/copa"
    with pytest.raises(DocumentError, match=rf"there is no validation.jsonl or .parquet of copa in .*{command}"):
        tasks.load("copa", tmp_path)
    with pytest.raises(DocumentError, match=rf"the data of copa cannot be read.*{command}"):
        tasks.load("copa", None)  # the hub, and the fixture keeps it away


def test_broken_data(tmp_path: Path) -> None:
    (tmp_path / "rte").mkdir()
    (tmp_path / "rte" / "validation.jsonl").write_text('{"sentence1": "')
    with pytest.raises(DocumentError, match="the data of rte cannot be read"):
        tasks.load("rte", tmp_path)
    (tmp_path / "rte" / "train.parquet").write_text("")
    with pytest.raises(DocumentError, match="files of json and parquet"):
        tasks.load("rte", tmp_path)


def test_a_record_without_a_field(tmp_path: Path) -> None:
    (tmp_path / "rte").mkdir()
    (tmp_path / "rte" / "validation.jsonl").write_text('{"sentence1": "Ames stood.", "label": 0}\n')
    with pytest.raises(DocumentError, match=r"rte.*sentence2"):
        list(registry.find("harness/rte")().items(Asking(TOKENIZER, (2048,), data=tmp_path)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"sentence2": None}, "rte, document 1 lacks sentence2"), ({"label": -1}, "rte, document 1 has the label -1")],
)
def test_a_broken_record_among_others(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    (tmp_path / "rte").mkdir()
    lines = [json.dumps(record) for record in (RECORDS["rte"], RECORDS["rte"] | changes)]
    (tmp_path / "rte" / "validation.jsonl").write_text("\n".join(lines))
    with pytest.raises(DocumentError, match=message):
        list(registry.find("harness/rte")().items(Asking(TOKENIZER, (2048,), data=tmp_path)))


def test_without_the_harness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lm_eval.tasks", None)
    with pytest.raises(SettingError, match=r"pip install 'hillinfer\[harness\]'"):
        tasks.harness()
