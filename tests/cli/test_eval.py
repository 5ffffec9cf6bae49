"""``hillinfer eval`` on a tiny model: the table, the file, and what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hillinfer.evaluation.results import read_results
from hillinfer.policies import registry
from hillinfer.profiling.profile_file import default_profile


@pytest.fixture
def arguments(model_dir: Path, tmp_path: Path) -> list[Any]:
    book = tmp_path / "book.txt"
    book.write_text("\n".join(f"On day {day} the ferry left at {day % 12}." for day in range(200)))
    asked = ["--model", model_dir, "--text", book, "--lengths", "1200", "--limit", 2]
    return ["eval", *asked, "--tasks", "passkey,text", "--policies", "hillinfer@20%,streaming-llm@20%"]


def test_the_table_and_the_file(hill: Any, arguments: list[Any], tmp_path: Path) -> None:
    output = tmp_path / "new folder" / "eval.json"
    shown = hill(*arguments, "--output", output)
    assert shown.code == 0, shown.err
    for words in ("tiny-llama", "passkey", "hillinfer@20%", "streaming-llm@20%", str(output)):
        assert words in shown.out
    assert "passkey, 1200 tokens (2 of 4), " in shown.err
    assert "min left" in shown.err
    results = read_results(output)
    assert len(results.rows) == 6
    names = {"eval.json", "eval-memory.svg", "eval-needles-passkey.svg"}
    assert {path.name for path in output.parent.iterdir()} == names


def test_json_is_the_file(hill: Any, arguments: list[Any], tmp_path: Path) -> None:
    output = tmp_path / "eval.json"
    answer = json.loads(hill(*arguments, "--output", output, "--json").out)
    assert answer == json.loads(output.read_text())
    assert answer["kind"] == "hillinfer-eval"


_KILLED = """
import os, signal
from hillinfer.cli import main
from hillinfer.evaluation.journal import Journal

append = Journal.append

def last(journal, item):
    append(journal, item)
    os.kill(os.getpid(), signal.SIGKILL)

Journal.append = last
main()
"""


def killed_after_an_item(arguments: list[Any], journal: Path) -> None:
    command = [sys.executable, "-c", _KILLED, *map(str, arguments)]
    killed = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert journal.exists()


def test_a_killed_run_goes_on(arguments: list[Any], hill: Any, tmp_path: Path) -> None:
    output = tmp_path / "eval.json"
    killed_after_an_item([*arguments, "--output", output], tmp_path / "eval.items.jsonl")
    hill(*arguments, "--output", output)
    hill(*arguments, "--output", tmp_path / "whole.json")
    assert output.read_text() == (tmp_path / "whole.json").read_text()


def test_a_run_does_not_go_on_with_another_model_or_policy(
    hill: Any, arguments: list[Any], model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_OWN", {})
    output, policy, twin = tmp_path / "eval.json", tmp_path / "policy.py", tmp_path / "twin" / model_dir.name
    policy.write_text(
        "from dataclasses import dataclass\nfrom hillinfer.policies import StreamingLLM, register\n"
        "@register\n@dataclass(frozen=True)\nclass Mine(StreamingLLM):\n    name = 'mine'\n    sinks: int = 2\n"
    )
    asked = [*arguments, "--output", output, "--policy-file", policy, "--policies", "mine@20%"]
    assert hill(*asked).code == 0
    settings = read_results(output).settings
    shutil.copytree(model_dir, twin)
    assert hill(*asked, "--model", twin).code == 0
    other = read_results(output).settings
    assert [name for name in settings if settings[name] != other[name]] == ["model"]
    policy.write_text(policy.read_text().replace("2", "3"))
    assert hill(*asked, "--model", twin).code == 0
    assert [name for name in other if other[name] != read_results(output).settings[name]] == ["policy_file"]


def test_a_run_does_not_go_on_with_files_that_were_changed_in_the_models_folder(
    arguments: list[Any], hill: Any, model_dir: Path, tmp_path: Path
) -> None:
    own, output = tmp_path / model_dir.name, tmp_path / "eval.json"
    shutil.copytree(model_dir, own)
    asked = [*arguments, "--model", own, "--output", output]
    killed_after_an_item(asked, tmp_path / "eval.items.jsonl")
    weights = next(own.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\1")
    shown = hill(*asked)
    assert shown.code == 2
    assert "of an unfinished run with other model files" in shown.err
    (tmp_path / "eval.items.jsonl").unlink()
    assert hill(*asked).code == 0
    assert "model files" not in read_results(output).settings  # two copies of a model give the same results


def test_asked_in_a_chat(hill: Any, arguments: list[Any], model_dir: Path, tmp_path: Path) -> None:
    output, bare = tmp_path / "eval.json", tmp_path / "bare"
    assert hill(*arguments, "--output", output, "--chat").code == 0
    assert read_results(output).settings["chat"] is True
    shutil.copytree(model_dir, bare)
    for template in bare.glob("chat_template*"):
        template.unlink()
    shown = hill(*arguments, "--output", output, "--chat", "--model", bare)
    assert shown.code == 2
    assert "this model has no chat template: leave out --chat" in shown.err


def test_a_run_does_not_go_on_with_another_default_profile(
    hill: Any, arguments: list[Any], model_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path / "cache"))
    output = tmp_path / "eval.json"
    usual = default_profile(model_dir.name)
    usual.parent.mkdir(parents=True)
    found = []
    for text in ("{}", "[]"):  # no profiles at all: that is said in the row, and what was there is known again
        usual.write_text(text)
        assert hill(*arguments, "--output", output, "--policies", "heterocache@50%", "--tasks", "passkey").code == 0
        found.append(read_results(output).settings["profile"])
    assert len({*found, None}) == 3


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("longbench/trec", "there is no trec.jsonl in"),
        ("longbench-v2", "there is no data.json in"),
        ("infinitebench/passkey", "there is no passkey.jsonl in"),
        ("harness/piqa", "there is no validation.jsonl or .parquet of piqa in"),
    ],
)
def test_data_is_looked_at_before_a_model_is(hill: Any, tmp_path: Path, task: str, message: str) -> None:
    asked = ["--tasks", task, "--data", tmp_path, "--policies", "h2o@20%", "--output", tmp_path / "eval.json"]
    shown = hill("eval", "--model", "no-such-model.gguf", *asked)
    assert shown.code == 2
    assert message in shown.err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "book.txt is empty: there is nothing to read in it"),
        (b"caf\xe9", "book.txt is not UTF-8: the byte 0xe9 at offset 3"),
        (None, "there is no .txt file in"),
    ],
)
def test_a_text_is_looked_at_before_a_model_is(
    hill: Any, tmp_path: Path, text: str | bytes | None, message: str
) -> None:
    folder = tmp_path / "books"
    folder.mkdir()
    (folder / "notes.md").write_text("no book")
    if text is not None:
        (folder / "book.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
    asked = ["--model", "no-such-model.gguf", "--output", tmp_path / "eval.json"]
    for named in [folder] if text is None else [folder, folder / "book.txt"]:
        shown = hill("eval", *asked, "--text", named)
        assert shown.code == 2
        assert message in shown.err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--tasks", "paskey"], "unknown task 'paskey': did you mean 'passkey'?"),
        (["--policies", "hilinfer@10%"], "unknown policy 'hilinfer': did you mean 'hillinfer'?"),
        (["--policies", "h2o"], "'h2o' has no budget above 0% and up to 100%: write h2o@20%"),
        (["--policies", "h2o@0%"], "write h2o@20%"),
        (["--policies", "h2o@20%,h2o@0.2"], "h2o@20% is named twice"),
        (["--policies", "full@10%"], "the full cache keeps everything: write full, without a budget"),
        (["--tasks", ","], "--tasks is ',': name tasks with commas between them"),
        (["--seed", "-1"], "--seed is -1: take one from 0 on"),
        (["--limit", "0"], "--limit is 0: ask for at least 1"),
        (["--lengths", "many"], "--lengths is 'many'"),
        (["--lengths", "0"], "--lengths is '0'"),
        (["--lengths", "1200.5"], "--lengths is '1200.5'"),
        (["--lengths", "nan"], "--lengths is 'nan'"),
        (["--lengths", "inf"], "--lengths is 'inf'"),
        (["--lengths", "5000"], "more than the model's context of 4096"),
        (["--text", "no-such.txt"], "--text no-such.txt: there is no such file or folder"),
        (["--output", "/dev/null/eval.json"], "name another with --output"),
        (["--output", "/"], "/ cannot be written"),
        (["--cold-dir", "nowhere"], "the cold folder nowhere is no folder"),
        (["--profile", "nowhere"], "nowhere cannot be read"),
        (["--small"], "--small has its own --tasks, --lengths and --limit"),
    ],
)
def test_what_is_refused(hill: Any, arguments: list[Any], tmp_path: Path, change: list[str], message: str) -> None:
    shown = hill(*arguments, "--output", tmp_path / "eval.json", *change)
    assert shown.code == 2
    assert message in " ".join(shown.err.splitlines()[-1:])
