"""``hillinfer profile`` on a tiny model and on the authors' files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hillinfer.profiling.profile_file import default_profile, read_profile

LLAMA = Path(__file__).parents[1] / "profiling/data/llama-3.1-8b-instruct_topk1024_th0.5_sim0.5.json"


@pytest.fixture
def arguments(model_dir: Path, document: Path) -> list[Any]:
    asked = ["--model", model_dir, "--text", document, "--steps", 6, "--top-k", 40]
    return ["profile", *asked, "--tau-similar", 0]  # all heads are alike


def test_the_table_the_file_and_the_picture(hill: Any, arguments: list[Any], tmp_path: Path) -> None:
    shown = hill(*arguments, "--picture", tmp_path / "roles.svg")
    assert shown.code == 0, shown.err
    path = default_profile("tiny-llama")
    profile = read_profile(path)
    assert profile.origin["text"]["source"].endswith("document.txt")
    assert profile.counts == {"anchor": 0, "volatile": 0, "pivot": 2, "satellite": 2}
    for words in ("tiny-llama: 0 anchors, 0 volatile, 2 pivots, 2 satellites", "0 → 1", "P s", str(path), "50.0%"):
        assert words in shown.out
    assert (tmp_path / "roles.svg").read_text().startswith("<?xml")


def test_json_says_what_was_found_and_where_it_is(hill: Any, arguments: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    answer = json.loads(hill(*arguments, "--at-step", -1, "--output", path, "--json").out)
    assert answer["output"] == str(path)
    assert answer["mean_share"] == pytest.approx(1)
    assert (answer["heads"], answer["whole_heads"], answer["least_budget"]) == (4, 2, 0.5)
    assert answer["origin"]["settings"]["edges"] == "step -1"
    assert [layer["clusters"] for layer in answer["layers"]] == [{"0": [1]}, {"0": [1]}]
    assert read_profile(path).counts == answer["counts"]


def test_generate_finds_the_profile_of_its_model(
    hill: Any, arguments: list[Any], model_dir: Path, document: Path
) -> None:
    asked = ["generate", "--model", model_dir, "--prompt-file", document, "--prompt", "When?", "--max-new-tokens", 12]
    asked += ["--policy", "heterocache", "--budget", "75%", "--set", "drift=1", "--hot-bytes", "100%"]
    assert "hillinfer profile" in json.loads(hill(*asked, "--json").out)["error"]
    hill(*arguments)
    answer = json.loads(hill(*asked, "--json").out)
    assert answer["policy"] == "heterocache", answer
    assert answer["new_tokens"] == 12
    assert answer["events"]["drifts"] > 0
    assert answer["tiers"]["device"]["bytes"] > 0
    shown = hill(*asked).out
    assert "drifts" in shown
    assert "refills" in shown


def test_importing_gives_the_authors_counts(hill: Any, tmp_path: Path) -> None:
    theirs = json.loads(LLAMA.read_text())
    answer = json.loads(hill("profile", "--import", LLAMA, "--output", tmp_path / "ours.json", "--json").out)
    assert answer["counts"] == theirs["meta"]["counts"]
    assert [layer["clusters"] for layer in answer["layers"]] == theirs["leader_member_relations"]
    assert answer["mean_share"] == pytest.approx(1)
    again = json.loads(hill("profile", "--import", tmp_path / "ours.json", "--json").out)
    assert again["counts"] == answer["counts"]
    assert again["output"] is None
    shown = hill("profile", "--import", LLAMA).out
    assert "33 pivots" in shown
    assert "F = 50 of 256 heads" in shown


def test_errors_name_the_fix(hill: Any, arguments: list[Any], model_dir: Path, tmp_path: Path) -> None:
    def error(*words: Any) -> str:
        shown = hill(*words, "--json")
        assert shown.code == 2, shown.out
        return str(json.loads(shown.out)["error"])

    (tmp_path / "half.json").write_text(LLAMA.read_text()[:1000])
    assert "not JSON" in error("profile", "--import", tmp_path / "half.json")
    assert "leave out --model" in error("profile", "--import", LLAMA, "--model", model_dir)
    assert "longer text" in error(*arguments, "--top-k", 2000)
    assert "ends in" in error(*arguments, "--picture", "roles.doc")
    assert "top-k of at least 1" in error(*arguments, "--top-k", 0)
    assert "no room for 5000 steps" in error(*arguments, "--steps", 5000)
