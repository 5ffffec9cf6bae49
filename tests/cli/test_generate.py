"""``hillinfer generate`` on a tiny model: the text, the table, the JSON, and Ctrl-C."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from hillinfer import models
from hillinfer.cli.progress import PrefillBar
from hillinfer.report import Report

TIERS = {"device", "hot", "cold", "scoring"}


@pytest.fixture
def arguments(model_dir: Path, document: Path) -> list[Any]:
    asked = ["--model", model_dir, "--prompt-file", document, "--prompt", "When does the ferry leave?"]
    return ["generate", *asked, "--max-new-tokens", 12]


def test_text_then_table(hill: Any, arguments: list[Any]) -> None:
    text = json.loads(hill(*arguments, "--policy", "full", "--json").out)["text"]
    shown = hill(*arguments, "--policy", "full")
    assert shown.code == 0
    assert shown.err == ""  # no terminal, no progress bar
    assert shown.out.startswith(text)
    table = shown.out[len(text) :]
    for row in ("KV in the device tier", "hot pool", "cold pool", "RSS", "hit rate", "moved per step", "prompt tokens"):
        assert row in table
    for unit in ("KiB", "tokens/s", "ms/token"):
        assert unit in table


def test_json_is_one_object_alone_with_every_key(hill: Any, arguments: list[Any]) -> None:
    shown = hill(*arguments, "--policy", "full", "--json")
    assert shown.code == 0
    [line] = shown.out.splitlines()
    answer = json.loads(line)
    assert answer.keys() == {field.name for field in fields(Report)}
    assert answer["tiers"].keys() == TIERS
    assert all(tier.keys() == {"bytes", "peak_bytes"} for tier in answer["tiers"].values())
    assert (answer["model"], answer["policy"], answer["alpha"]) == ("tiny-llama", "full", None)
    assert (answer["new_tokens"], answer["document_tokens_cut"]) == (12, 0)
    assert answer["prompt_tokens"] > 400


def test_json_is_alone_even_when_a_library_prints(
    hill: Any, arguments: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    load = models.load

    def chatty(*spec: Any) -> Any:
        print("Loading weights: 100%")
        return load(*spec)

    monkeypatch.setattr("hillinfer.models.load", chatty)
    shown = hill(*arguments, "--policy", "full", "--json")
    json.loads(shown.out)
    assert "Loading weights" in shown.err


def test_alpha_one_gives_the_stock_caches_text_and_fills_the_tiers(hill: Any, arguments: list[Any]) -> None:
    full = json.loads(hill(*arguments, "--policy", "full", "--json").out)
    tiered = json.loads(hill(*arguments, "--alpha", "1", "--json").out)
    assert tiered["text"] == full["text"]
    assert (tiered["policy"], tiered["alpha"], tiered["device"]) == ("hillinfer", 1.0, "software")
    assert tiered["tiers"]["cold"]["bytes"] > 0


def test_selected_tokens_with_every_setting(hill: Any, arguments: list[Any], tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    settings = {"--alpha": 0.3, "--reduce": "max-lse", "--scope": "head", "--mass": 0.9, "--hot-bytes": "30%"}
    settings |= {"--device-bytes": "64KiB", "--prefill-chunk": 100, "--cold-dir": tmp_path, "--trace": trace}
    shown = hill(*arguments, *(word for pair in settings.items() for word in pair), "--json")
    answer = json.loads(shown.out)
    assert shown.code == 0, answer
    assert answer["alpha"] == 0.3
    assert answer["new_tokens"] == 12
    assert json.loads(trace.read_text())["traceEvents"]


def test_seed_decides_with_a_temperature(hill: Any, arguments: list[Any]) -> None:
    def text(seed: int) -> str:
        shown = hill(*arguments, "--policy", "full", "--temperature", 1, "--top-p", 0.9, "--seed", seed, "--json")
        return str(json.loads(shown.out)["text"])

    assert text(1) == text(1)
    assert text(1) != text(2)


def test_built_in_document_is_cut_when_asked_and_counted(hill: Any, model_dir: Path) -> None:
    asked = ["generate", "--model", model_dir, "--policy", "full", "--max-new-tokens", 2]
    answer = json.loads(hill(*asked, "--json").out)
    assert answer["kind"] == "DocumentError"  # 6,500 tokens into a context of 4,096
    answer = json.loads(hill(*asked, "--truncate", "middle", "--json").out)
    assert answer["document_tokens_cut"] > 2000
    assert answer["prompt_tokens"] + 2 == 4096
    assert f"({answer['document_tokens_cut']} cut" in hill(*asked, "--truncate", "middle").out


def test_progress_bar_shows_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(show: bool, terminal: bool) -> str:
        out = io.StringIO()
        console = Console(file=out, force_terminal=terminal, width=120)
        monkeypatch.setattr("hillinfer.cli.progress.stderr", lambda: console)
        with PrefillBar(show) as bar:
            for done in (0, 500, 1000):
                bar.update(done, 1000)
        return out.getvalue()

    assert "1000/1000" in shown(show=True, terminal=True)
    assert shown(show=True, terminal=False) == ""
    assert shown(show=False, terminal=True) == ""


@pytest.mark.parametrize("policy", ["full", "hillinfer"])
def test_ctrl_c_ends_with_the_text_so_far_and_130(arguments: list[Any], tmp_path: Path, policy: str) -> None:
    cold = tmp_path / "cold"
    cold.mkdir()
    command = [sys.executable, "-m", "hillinfer.cli", *map(str, arguments), "--max-new-tokens", "3000"]
    child = subprocess.Popen(
        [*command, "--policy", policy, "--cold-dir", str(cold)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,  # else read(1) would take more, and communicate() would not give it back
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs start with it ignored
    )
    with child:
        assert child.stdout is not None
        first = child.stdout.read(1)
        child.send_signal(signal.SIGINT)
        rest, err = child.communicate(timeout=60)
    assert child.returncode == 130, err
    assert err.decode().strip() == "interrupted"
    assert (first + rest).endswith(b"\n")
    assert b"prefill" not in rest  # no table
    assert list(cold.iterdir()) == []
