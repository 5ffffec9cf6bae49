"""``hillinfer bench balance`` on a tiny shape: every figure is there, and the crossing is where two lines meet."""

from __future__ import annotations

import json

import pytest

from hillinfer.bench.balance import Point, crossing
from hillinfer.calibration import figure
from hillinfer.cli import run


def test_the_table_and_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hillinfer.bench.balance._SHARES", (0.8, 0.2))
    monkeypatch.setattr("hillinfer.bench.balance._WARM", 1)
    monkeypatch.setattr("hillinfer.calibration.measure._ROWS_BYTES", 1 << 20)
    monkeypatch.setattr(figure, "_REPEAT", 0.0)
    monkeypatch.setattr("hillinfer.bench.balance._SECONDS", 0.01)
    output = tmp_path / "balance.json"
    arguments = ["--shape", "1x2x16", "--tokens", "1024", "--steps", "2", "--alpha", "0.1", "--hot-bytes", "90%"]
    assert run(["bench", "balance", *arguments, "--cold-dir", str(tmp_path), "--output", str(output)]) == 0
    assert "the host scores" in capsys.readouterr().out
    result = json.loads(output.read_text())
    shares = [point["share"] for point in result["points"]]
    assert shares == pytest.approx([0.8, 0.2], abs=0.15)
    assert all(point["cpu"] > 0 < point["csd"] for point in result["points"])
    assert 0 <= result["summary"]["balance_error"] <= 1
    assert set(result["figures"]) == {"f_c", "f_s", "B_c", "B_s"}
    assert list(tmp_path.iterdir()) == [output]


def test_where_two_lines_meet():
    points = [Point(s, s, cpu=1 + 4 * s, csd=5 - 4 * s, step=6.0) for s in (0.9, 0.6, 0.45, 0.1)]
    assert crossing(points) == pytest.approx(0.5)
    assert crossing([Point(s, s, cpu=1 + s, csd=9 - s, step=1.0) for s in (0.9, 0.1)]) is None
    assert crossing(points[:1]) is None


@pytest.mark.parametrize("arguments", [["--steps", "1"], ["--alpha", "0"], ["--shape", "1x1"], ["--tokens", "10"]])
def test_bad_input_is_one_error(arguments, capsys):
    assert run(["bench", "balance", *arguments]) == 2
    assert "error:" in capsys.readouterr().err
