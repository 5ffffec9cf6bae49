"""Bad input: one line that names the fix (or one JSON object), exit code 2, and no model loaded for nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BAD_SETTINGS = [
    (["--alpha", "0"], "SettingError", "above 0 and at most 1"),
    (["--alpha", "1.5"], "SettingError", "above 0 and at most 1"),
    (["--alpha", "much"], "UsageError", "--alpha"),
    (["--tokens", "0"], "SettingError", "at least 1"),
    (["--mass", "2"], "SettingError", "above 0 and at most 1"),
    (["--mass", "0.9", "--reduce", "sum"], "SettingError", "max-lse"),
    (["--reduce", "max"], "UsageError", "max-lse"),
    (["--policy", "hilinfer"], "SettingError", "did you mean 'hillinfer'"),
    (["--hot-bytes", "lots"], "SettingError", "--hot-bytes: cannot read 'lots'"),
    (["--hot-bytes", "0%"], "SettingError", "must be positive"),
    (["--device-bytes", "-1"], "SettingError", "--device-bytes: cannot read"),
    (["--cold-dir", "/nowhere/at/all"], "ColdPoolError", "create it"),
    (["--device", "rtll"], "SettingError", "did you mean 'rtl'"),
    (["--device", "xrt"], "SettingError", "write xrt:0"),
    (["--xclbin", "a.xclbin"], "SettingError", "software is none"),
    (["--device-keys", "disk"], "UsageError", "resident"),
    (["--on-device-error", "retry"], "UsageError", "fallback"),
    (["--prefill-chunk", "0"], "SettingError", "at least 1 token"),
    (["--max-new-tokens", "0"], "SettingError", "at least 1"),
    (["--temperature", "-1"], "SettingError", "use 0"),
    (["--top-p", "0"], "SettingError", "up to 1"),
    (["--seed", "-1"], "SettingError", "from 0 on"),
    (["--seed", str(1 << 63)], "SettingError", "at most 63 bits"),
    (["--dtype", "int8"], "UsageError", "bfloat16"),
    (["--truncate", "start"], "UsageError", "middle"),
    (["--prompt", "  "], "DocumentError", "--prompt is empty"),
    (["--prompt-file", "/nowhere/book.txt"], "DocumentError", "/nowhere/book.txt"),
    (["--trace", "/nowhere/trace.json"], "SettingError", "folder that exists"),
    (["--trace", "trace.json", "--policy", "full"], "SettingError", "has none"),
    (["--device", "native", "--policy", "full"], "SettingError", "has none"),
    (["--device", "xrt:0", "--policy", "streaming-llm"], "SettingError", "has none"),
    (["--hot-bytes", "5%", "--policy", "snapkv"], "SettingError", "--hot-bytes is about the tiers"),
    (["--device-bytes", "1MiB", "--policy", "full"], "SettingError", "--device-bytes is about the tiers"),
    (["--lookahead", "1", "--policy", "snapkv"], "SettingError", "--lookahead is about the tiers"),
    (["--balance", "0.5", "--policy", "snapkv"], "SettingError", "--balance is about the tiers"),
    (["--threads", "0"], "SettingError", "at least 1"),
    (["--threads", "100000"], "SettingError", "at most 1,024"),
    (["--threads", "2", "--policy", "full"], "SettingError", "--threads is about the tiers"),
    (["--colour", "red"], "UsageError", "--colour"),
]


@pytest.fixture
def no_loading(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: Any) -> None:
        raise AssertionError("a model was loaded although the settings are wrong")

    monkeypatch.setattr("hillinfer.models.load", load)


@pytest.mark.usefixtures("no_loading")
@pytest.mark.parametrize(("device", "variable"), [("rtl", "HILLINFER_RTL"), ("native", "HILLINFER_NATIVE")])
def test_a_device_that_lacks_something_is_told_before_loading(
    hill: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, device: str, variable: str
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "nowhere"))
    shown = hill("generate", "--device", device)
    assert (shown.code, shown.out) == (2, "")
    [line] = shown.err.splitlines()
    assert f"correct {variable}" in line


@pytest.mark.usefixtures("no_loading")
@pytest.mark.parametrize(("arguments", "kind", "says"), BAD_SETTINGS)
def test_bad_setting_is_one_line_before_loading(hill: Any, arguments: list[str], kind: str, says: str) -> None:
    shown = hill("generate", *arguments)
    assert shown.code == 2
    assert shown.out == ""
    [line] = shown.err.splitlines()
    assert line.startswith("error: ")
    assert says in line

    shown = hill("generate", "--json", *arguments)
    assert shown.code == 2
    [line] = shown.out.splitlines()
    answer = json.loads(line)
    assert answer.keys() == {"error", "kind"}
    assert answer["kind"] == kind
    assert says in answer["error"]


OUTPUTS = [
    *(("bench", name) for name in ("ablation", "balance", "big", "copies", "decode", "growth", "io", "policies")),
    ("bench", "scorer"),
    ("profile",),
    *(("simulate", name) for name in ("record", "measure", "validate", "fit", "paper")),
]


@pytest.mark.usefixtures("no_loading")
@pytest.mark.parametrize("command", OUTPUTS, ids=" ".join)
def test_an_output_that_cannot_be_is_told_before_the_work(hill: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "file").write_text("mine")
    for output, says in ((tmp_path / "file" / "x.json", "takes no files"), (tmp_path, "is a folder")):
        shown = hill(*command, "--output", output)
        assert shown.code == 2
        assert says in shown.err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.usefixtures("no_loading")
def test_a_place_that_may_not_be_looked_into_is_one_line(hill: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_dir", refused)
    for option in ("--output", "--cold-dir"):
        shown = hill("bench", "big", option, "/root/reports/x.json")
        assert shown.code == 2
        [line] = shown.err.splitlines()
        assert "(Permission denied): name another" in line


@pytest.mark.usefixtures("no_loading")
@pytest.mark.parametrize(
    "command", [("calibrate",), *(each for each in OUTPUTS if each[-1] not in ("scorer", "profile", "fit", "paper"))]
)
def test_a_cold_folder_that_is_none_is_told_before_the_work(
    hill: Any, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "file").write_text("mine")
    shown = hill(*command, "--cold-dir", tmp_path / "file")
    assert (shown.code, shown.out) == (2, "")
    assert "is no folder: create it, or name another with --cold-dir" in shown.err


@pytest.mark.usefixtures("no_loading")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("decode", "--hot", "much"), "cannot read 'much'"),
        (("ablation", "--hot", "much"), "cannot read 'much'"),
        (("io", "--size", "0"), "cannot use --size 0"),
        (("policies", "--profile", "/nowhere/profile.json"), "/nowhere/profile.json"),
        (("io", "--seconds", "nan"), "more than 0"),
    ],
)
def test_a_benchmarks_bad_setting_is_told_before_the_work(hill: Any, arguments: tuple[str, ...], says: str) -> None:
    shown = hill("bench", *arguments)
    assert (shown.code, shown.out) == (2, "")
    [line] = shown.err.splitlines()
    assert says in line


@pytest.mark.parametrize("arguments", [["policies"], ["policies", "--json"], ["--help"], ["--version"]], ids=" ".join)
def test_an_output_that_takes_no_more_is_one_line(arguments: list[str]) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "hillinfer.cli", *arguments], stdout=full, stderr=subprocess.PIPE)
    [line] = done.stderr.decode().splitlines()
    assert line == "error: what was written found no room (No space left on device): make some, or write elsewhere"
    assert done.returncode == 2


def test_a_reader_that_has_enough_is_no_error() -> None:
    reads, writes = os.pipe()
    os.close(reads)
    with open(writes, "w") as gone:
        done = subprocess.run([sys.executable, "-m", "hillinfer.cli", "policies"], stdout=gone, stderr=subprocess.PIPE)
    assert done.stderr == b""
    assert done.returncode != 0


def test_unknown_command(hill: Any) -> None:
    shown = hill("genrate")
    assert shown.code == 2
    assert "No such command 'genrate'" in shown.err


def test_unknown_model(hill: Any) -> None:
    shown = hill("generate", "--model", "/nowhere/model", "--json")
    assert (shown.code, json.loads(shown.out)["kind"]) == (2, "ModelError")


def test_prompt_that_is_not_utf8(hill: Any, tmp_path: Path) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes("café".encode("latin-1"))
    shown = hill("generate", "--prompt-file", path)
    assert shown.code == 2
    assert "not UTF-8" in shown.err


def test_prompt_longer_than_the_context_names_both_ways_out(hill: Any, model_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "long.txt"
    path.write_text("word " * 1000)
    shown = hill("generate", "--model", model_dir, "--prompt-file", path, "--prompt", "Well?", "--json")
    answer = json.loads(shown.out)
    assert (shown.code, answer["kind"]) == (2, "DocumentError")
    assert "--truncate middle" in answer["error"]


def test_debug_shows_the_traceback_and_the_line(hill: Any) -> None:
    for arguments in (["--debug", "generate"], ["generate", "--debug"]):
        shown = hill(*arguments, "--alpha", "7")
        assert shown.code == 2
        assert "Traceback" in shown.err
        assert shown.err.splitlines()[-1].startswith("error: ")


def raising(error: BaseException) -> Any:
    def load(*_: Any) -> None:
        raise error

    return load


def test_interrupt(hill: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hillinfer.models.load", raising(KeyboardInterrupt()))
    shown = hill("generate")
    assert (shown.code, shown.out, shown.err.strip()) == (130, "", "interrupted")
    shown = hill("generate", "--json")
    assert (shown.code, json.loads(shown.out)["error"]) == (130, "interrupted")


def test_a_defect_is_a_traceback_but_json_stays_json(hill: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hillinfer.models.load", raising(ZeroDivisionError("oops")))
    with pytest.raises(ZeroDivisionError):
        hill("generate")
    shown = hill("generate", "--json")
    assert (shown.code, json.loads(shown.out)) == (1, {"error": "oops", "kind": "ZeroDivisionError"})
    assert "Traceback" in shown.err
