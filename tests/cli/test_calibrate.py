"""``hillinfer calibrate``: what is kept, what is shown, and a busy machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hillinfer.calibration import measure

QUICK = ("calibrate", "--shape", "1x2x16", "--seconds", "0.01")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_ROWS_BYTES", 1 << 20)
    monkeypatch.setattr(measure, "SPREAD_LIMIT", 1e9)
    monkeypatch.setattr(measure, "LOAD_LIMIT", 1e9)


def test_the_figures_are_shown_and_kept(hill: Any) -> None:
    done = hill(*QUICK)
    assert done.code == 0, done.err
    for word in ("f_c", "f_s", "B_c", "B_s", "β", "kept in"):
        assert word in done.out
    again = json.loads(hill(*QUICK, "--json").out)
    path = Path(again["file"])
    assert again["kept"]
    assert json.loads(path.read_text())["where"] == again["where"]
    assert again["beta_two_hop"] >= again["beta_p2p"] > 0


def test_on_a_busy_machine_the_old_figures_stay(hill: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(json.loads(hill(*QUICK, "--json").out)["file"])
    before = path.read_text()
    monkeypatch.setattr(measure, "SPREAD_LIMIT", -1.0)
    busy = hill(*QUICK)
    assert busy.code == 1
    assert "not kept, the machine was busy: f_c spreads by" in busy.err
    assert "The figures of before stay in use" in busy.err
    assert path.read_text() == before
    assert json.loads(hill(*QUICK, "--json").out)["kept"] is False
    assert hill(*QUICK, "--force").code == 0
    assert path.read_text() != before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--shape", "8x128"], "write KV heads x queries per head x dimension"),
        (["--shape", "0x1x16"], "is no shape"),
        (["--shape", "1x1x16", "--model", "x"], "not both"),
        (["--shape", "1x1x16", "--alpha", "0"], "--alpha"),
        (["--shape", "1x1x16", "--seconds", "0"], "--seconds"),
        (["--shape", "1x1x16", "--device", "fpga"], "unknown device"),
        (["--shape", "1x1x16", "--cold-dir", "/nowhere/at/all"], "/nowhere/at/all"),
    ],
)
def test_bad_input_is_one_error(hill: Any, arguments: list[str], message: str) -> None:
    done = hill("calibrate", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_generate_takes_a_split_and_reads_ahead(hill: Any, model_dir: Path, document: Path, tmp_path: Path) -> None:
    """The same text; and the report says how well either went."""
    arguments = ["generate", "--model", model_dir, "--prompt-file", document, "--prompt", "When?"]
    arguments += ["--max-new-tokens", "4", "--cold-dir", tmp_path, "--json"]
    plain = json.loads(hill(*arguments).out)
    assert plain["balance_error"] is None
    assert plain["lookahead_rows"] == 0
    split = json.loads(hill(*arguments, "--balance", "0.5", "--lookahead", "1").out)
    assert split["text"] == plain["text"]
    assert 0 <= split["balance_error"] <= 1
    assert 0 < split["host_share"] < 1
    assert split["lookahead_rows"] > 0
    for wrong in (["--balance", "most"], ["--lookahead", "7"]):
        assert hill(*arguments[:-1], *wrong).code == 2
