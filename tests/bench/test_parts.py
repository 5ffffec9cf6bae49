"""All benchmarks together: a part that fails is told, and the others count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hillinfer import cli
from hillinfer.bench import parts


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Parts that were run, in the place of which a file is written; "big" fails."""
    seen: list[str] = []

    def run_part(arguments: list[str], say: Any, silent: bool) -> tuple[int, str]:
        part, output = arguments[1], Path(arguments[3])
        seen.append(part)
        if not silent:
            print("a table")
        say("half way")
        if part == "big":
            return 2, "error: the disk is full"
        if part == "decode":
            result = {
                "summary": {"decode_8k_ratio": 0.5, "decode_32k_ratio": None},
                "reasons": {"decode_32k_ratio": "x"},
                "bounds": {"decode_8k_ratio": {"bound": "y", "value": 0.4, "distance": 1.25}},
            }
        else:
            result = {"summary": {"balance_error": 0.1}}
        output.write_text(json.dumps(result))
        return 0, ""

    monkeypatch.setattr(parts, "run_part", run_part)
    return seen


def test_summaries_are_merged_and_failures_told(tmp_path: Path, ran: list[str]) -> None:
    said: list[str] = []
    chosen = ["decode", "big", "balance"]
    outcomes = parts.run_parts(chosen, tmp_path, resume=False, quick=False, cold_dir=None, say=said.append)
    assert ran == chosen
    assert [outcome.failure for outcome in outcomes] == ["", "error: the disk is full", ""]
    assert "half way" in said
    assert any("big FAILED" in each for each in said)
    result = parts.merged(tmp_path, outcomes)
    assert list(result["summary"]) == [name for names in parts.PARTS.values() for name in names]
    assert result["summary"]["decode_8k_ratio"] == 0.5
    assert result["summary"]["balance_error"] == 0.1
    reasons = result["reasons"]
    assert reasons.keys() == {name for name, value in result["summary"].items() if value is None}
    assert reasons["decode_32k_ratio"] == "x"
    assert result["bounds"] == {"decode_8k_ratio": {"bound": "y", "value": 0.4, "distance": 1.25}}
    assert reasons["hot_hit_rate"] == "error: the disk is full"
    assert reasons["decode_8k_added_ratio"] == "bench decode did not measure it"
    assert reasons["scorer_int8_over_torch"] == "bench scorer was not run"


def test_json_is_alone_on_stdout(tmp_path: Path, ran: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bench", "all", "--folder", str(tmp_path), "--only"]
    assert cli.run([*command, "decode,big", "--json"]) == 1  # a part failed
    assert ran == ["decode", "big"]
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "bench.json").read_text())
    assert cli.run([*command, "decode"]) == 0
    assert "a table" in capsys.readouterr().out


def test_parts_that_are_there_are_not_run_again(tmp_path: Path, ran: list[str]) -> None:
    for _ in range(2):
        outcomes = parts.run_parts(
            ["decode", "big"], tmp_path, resume=True, quick=False, cold_dir=None, say=lambda _: None
        )
    assert ran == ["decode", "big", "big"]
    assert [outcome.reused for outcome in outcomes] == [True, False]


def test_an_old_result_does_not_pass_for_a_new_one(tmp_path: Path, ran: list[str]) -> None:
    (tmp_path / "big.json").write_text('{"summary": {"hot_hit_rate": 1}}')
    outcomes = parts.run_parts(["big"], tmp_path, resume=False, quick=False, cold_dir=None, say=lambda _: None)
    assert ran == ["big"]
    assert parts.merged(tmp_path, outcomes)["summary"]["hot_hit_rate"] is None


def test_a_part_that_fails_says_why() -> None:
    said: list[str] = []
    code, words = parts.run_part(["bench", "big", "--lines", "mah:1:1:1"], said.append)
    assert code == 2
    assert "unknown shape 'mah': did you mean 'mha'?" in words
    assert said


def test_quick_arguments_are_of_every_part() -> None:
    assert parts.QUICK.keys() == parts.PARTS.keys()
