"""``hillinfer simulate``: every command on a tiny model, and what it says to bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hillinfer.simulation import hardware
from hillinfer.simulation.recording import load, save
from hillinfer.simulation.trace import LayerStep, Trace


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("The ferry leaves at seven, and the café opens at eight.\n" * 20, encoding="utf-8")
    return path


def test_run_shows_every_method(hill: Any, tmp_path: Path) -> None:
    shown = hill("simulate", "run", "--steps", 2, "--trace", tmp_path / "timeline.json")
    assert shown.code == 0, shown.err
    for words in ("opt-6.7b on paper", "hillinfer-no-hkm", "full-drive", "infinigen"):
        assert words in shown.out
    assert json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]
    answer = json.loads(
        hill("simulate", "run", "--steps", 2, "--shape", "qwen2.5-7b", "--tokens", 200_000, "--json").out
    )
    assert answer["methods"]["hillinfer"]["step_ms"] > 0
    assert 0 < answer["methods"]["hillinfer"]["busy"]["gpu"] < 1
    assert answer["recorded"]["alpha"] == 0.1
    assert not any(isinstance(value, dict | list) for value in answer["recorded"].values())


def test_record_measure_and_run_by_both(hill: Any, model_dir: Path, text: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.npz"
    asked = [
        "simulate",
        "record",
        "--model",
        model_dir,
        "--text",
        text,
        "--tokens",
        300,
        "--steps",
        3,
        "--output",
        trace,
    ]
    shown = hill(*asked)
    assert shown.code == 0, shown.err
    assert len(load(trace).steps) == 3
    assert load(trace).positions is not None
    shown = hill("simulate", "measure", "--model", model_dir, "--rounds", 1)
    assert shown.code == 0, shown.err
    box = hardware.load("here")
    assert box.gpu is None
    assert box.software.engine_layer.source.startswith("measured here")
    shown = hill("simulate", "run", "--from", trace, "--hardware", "here", "--shape", "smollm2-135m", "--steps", 2)
    assert shown.code == 0, shown.err
    assert "hillinfer" in shown.out


def test_validate_holds_the_model_beside_the_clock(hill: Any, model_dir: Path, text: Path, tmp_path: Path) -> None:
    path = tmp_path / "simulate.json"
    asked = ["simulate", "validate", "--model", model_dir, "--text", text, "--contexts", 512, "--alphas", 0.1]
    shown = hill(*asked, "--rounds", 1, "--output", path)
    assert shown.code == 0, shown.err
    result = json.loads(path.read_text())
    assert (result["kind"], result["version"], result["summary"]["settings"]) == ("hillinfer-simulate", 1, 13)
    assert [(each["policy"], each["hot_share"]) for each in result["left_out"]] == [("leoam", 0.2)]
    assert "index" in result["left_out"][0]["why"]
    assert "left out: leoam" in shown.out
    assert {row["policy"] for row in result["rows"]} == {
        "full",
        "streaming-llm",
        "h2o",
        "hillinfer α=0.1",
        "hillinfer α=1",
        "hillinfer α=0.1, lookahead 1",
        "quest",
        "leoam",
        "infinigen",
    }
    for row in result["rows"]:
        assert row["measured_ms"] > 0
        assert row["error"] == pytest.approx(row["simulated_ms"] / row["measured_ms"] - 1)


def test_a_trace_of_another_policy_is_one_line(hill: Any, tmp_path: Path) -> None:
    trace = tmp_path / "quest.npz"
    save(Trace("tiny", "quest", [[LayerStep(100, attended=20)] * 2]), trace)
    shown = hill("simulate", "run", "--from", trace)
    assert shown.code == 2
    assert "was recorded with quest" in shown.err
    assert "simulate record --policy hillinfer" in shown.err
    assert len(shown.err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["run", "--hardware", "papr"], "did you mean 'paper'"),
        (["run", "--shape", "opt-6b"], "did you mean 'opt-6.7b'"),
        (["run", "--method", "hilinfer"], "did you mean 'hillinfer'"),
        (["run", "--from", "none.npz"], "cannot be read"),
        (["run", "--tokens", 0], "at least 1"),
        (["run", "--tokens", 10**8, "--method", "full-dram"], "do not fit"),
        (["run", "--method", "full-device", "--steps", 1, "--trace", "/dev/null/x.json"], "takes no files"),
        (["record", "--steps", 0], "at least 1"),
        (["record", "--policy", "hilinfer"], "did you mean 'hillinfer'"),
        (["measure", "--rounds", 0], "at least 1"),
        (["validate", "--contexts", "100"], "multiples of 512"),
        (["validate", "--contexts", "1024.5"], "write whole numbers"),
        (["validate", "--contexts", "inf"], "write whole numbers"),
        (["validate", "--contexts", "1024,1536"], "take others than 64, 256, 1536, 3072, 6144"),
        (["validate", "--alphas", "2"], "above 0 up to 1"),
    ],
)
def test_bad_input_is_one_line(hill: Any, arguments: list[Any], told: str) -> None:
    shown = hill("simulate", *arguments)
    assert shown.code == 2
    assert told in shown.err
    assert len(shown.err.strip().splitlines()) == 1
