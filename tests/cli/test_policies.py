"""``hillinfer policies``, and policies in ``hillinfer generate``: budgets, settings, a file of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hillinfer import policies
from hillinfer.policies import registry

DOCS = Path(__file__).parents[2] / "docs" / "policies.md"


@pytest.fixture(autouse=True)
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_OWN", {})


@pytest.fixture
def arguments(model_dir: Path, document: Path) -> list[Any]:
    asked = ["--model", model_dir, "--prompt-file", document, "--prompt", "When does the ferry leave?"]
    return ["generate", *asked, "--max-new-tokens", 6]


@pytest.fixture
def key_norm(tmp_path: Path) -> Path:
    """The example of docs/policies.md, as a file."""
    [code] = [part.split("```", 1)[0] for part in DOCS.read_text(encoding="utf-8").split("```python\n")[1:]]
    assert len(code.splitlines()) < 60
    path = tmp_path / "key_norm.py"
    path.write_text(code, encoding="utf-8")
    return path


def test_table_names_every_policy_and_which_drop_tokens(hill: Any) -> None:
    shown = hill("policies")
    assert shown.code == 0
    for name in policies.names():
        assert name in shown.out
    assert shown.out.count("drops tokens") == sum(policies.find(name).drops for name in policies.names())


def test_json_is_a_list_of_objects(hill: Any) -> None:
    listed = json.loads(hill("policies", "--json").out)
    assert [each["name"] for each in listed] == policies.names()
    for each in listed:
        assert each.keys() == {"name", "source", "keeps", "drops", "settings"}
        for setting in each["settings"]:
            assert setting.keys() == {"name", "type", "optional", "default", "help"}


def test_one_policy_with_its_settings(hill: Any) -> None:
    shown = hill("policies", "cake")
    for word in ("arXiv 2503.12491", "drops tokens", "gamma", "200", "weight of the variance"):
        assert word in shown.out
    assert json.loads(hill("policies", "cake", "--json").out)["name"] == "cake"
    assert "no settings" in hill("policies", "full").out
    assert "did you mean 'cake'" in hill("policies", "cak").err


def test_docs_list_every_policy() -> None:
    table = [line.split("`")[1] for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert set(policies.names()) <= set(table)


def test_a_dropping_policy_says_so_and_holds_its_budget(hill: Any, arguments: list[Any]) -> None:
    chosen = ["--policy", "snapkv", "--budget", "64", "--set", "window=16", "--set", "pooling=max"]
    answer = json.loads(hill(*arguments, *chosen, "--json").out)
    assert (answer["policy"], answer["drops"], answer["budget"]) == ("snapkv", True, "64 tokens")
    assert (answer["alpha"], answer["device"]) == (None, None)
    assert answer["dropped_tokens"] == answer["prompt_tokens"] + answer["new_tokens"] - 1 - 64
    assert answer["tiers"]["device"]["bytes"] == 64 * 2 * 2 * 2 * 16 * 4  # layers, K and V, heads, float32
    assert answer["tiers"]["cold"]["bytes"] == 0
    table = hill(*arguments, *chosen).out
    assert "policy snapkv (drops tokens), budget 64 tokens" in table
    assert "dropped for good" in table


def test_the_budget_is_every_policys(hill: Any, arguments: list[Any]) -> None:
    hot = ["--hot-bytes", "100%"]
    for name, tiers in (("hillinfer", hot), ("quest", hot), ("streaming-llm", [])):
        answer = json.loads(hill(*arguments, "--policy", name, "--budget", "30%", *tiers, "--json").out)
        assert (answer["policy"], answer["budget"]) == (name, "30%"), answer


def test_the_documented_example_runs(hill: Any, arguments: list[Any], key_norm: Path) -> None:
    listed = json.loads(hill("policies", "key-norm", "--policy-file", key_norm, "--json").out)
    assert [setting["name"] for setting in listed["settings"]] == ["budget", "recent"]
    chosen = ["--policy-file", key_norm, "--policy", "key-norm"]
    answer = json.loads(hill(*arguments, *chosen, "--budget", "20%", "--json").out)
    assert answer["drops"]
    assert answer["tiers"]["device"]["bytes"] <= 0.2 * 512 * (answer["prompt_tokens"] + 5)
    whole = json.loads(hill(*arguments, *chosen, "--budget", "100%", "--json").out)
    assert whole["text"] == json.loads(hill(*arguments, "--policy", "full", "--json").out)["text"]
    assert "needs at least 17" in hill(*arguments, *chosen, "--budget", "9").err


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        (["--policy", "snapkw"], "did you mean 'snapkv'"),
        (["--policy", "snapkv", "--set", "windw=8"], "did you mean 'window'"),
        (["--policy", "snapkv", "--set", "window"], "write NAME=VALUE"),
        (["--policy", "snapkv", "--set", "window=wide"], "window of snapkv is a whole number, not 'wide'"),
        (["--policy", "snapkv", "--set", "budget=9", "--budget", "9"], "given twice"),
        (["--policy", "snapkv", "--budget", "32"], "needs at least 33 (its window of 32 and 1 token before it)"),
        (["--policy", "streaming-llm", "--budget", "4"], "needs at least 5 (4 sinks and 1 recent token)"),
        (["--policy", "snapkv", "--budget", "lots"], "a ratio (20%), a number of tokens (512) or bytes (64MiB)"),
        (["--policy", "snapkv", "--alpha", "0.1"], "snapkv has no setting 'alpha'"),
        (["--budget", "20%", "--alpha", "0.1"], "both say how much"),
        (["--policy", "full", "--budget", "20%"], "full has no setting 'budget'"),
        (["--policy-file", "absent.py"], "there is no such file"),
    ],
)
def test_mistakes_are_told_in_a_line_before_a_model_is_loaded(
    hill: Any, arguments: list[Any], chosen: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hillinfer.models.load", lambda *_: pytest.fail("a model was loaded"))
    shown = hill(*arguments, *chosen, "--json")
    assert shown.code == 2
    answer = json.loads(shown.out)
    assert answer["kind"] == "SettingError"
    assert says in answer["error"]


def test_a_ratio_is_judged_by_the_prompt_before_anything_is_computed(hill: Any, arguments: list[Any]) -> None:
    shown = hill(*arguments, "--policy", "snapkv", "--budget", "1%")
    assert shown.code == 2
    assert "a budget of 1% allows 10 tokens, and snapkv needs at least 33" in shown.err
    assert shown.out == ""


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("x = 1\n", "registers no policy"),
        ("x = (\n", "SyntaxError"),
        ("y = 1\nimport absent_module\n", "No module named 'absent_module' (line 2)"),
        ("from hillinfer.policies import register\nregister(int)\n", "must be a dataclass"),
    ],
)
def test_a_file_of_ones_own_that_fails(hill: Any, tmp_path: Path, code: str, says: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(code)
    shown = hill("policies", "--policy-file", path)
    assert shown.code == 2
    assert says in shown.err
    assert "Traceback" not in shown.err
