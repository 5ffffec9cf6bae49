"""``hillinfer bench balance`` on a tiny shape: every figure is there, and the crossing is where two lines meet."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hillinfer.bench.balance import Point, Steps, crossing, interval
from hillinfer.calibration import figure
from hillinfer.cli import run


def test_the_table_and_the_file(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hillinfer.bench.balance._SHARES", (0.8, 0.2))
    monkeypatch.setattr("hillinfer.bench.balance._WARM", 1)
    monkeypatch.setattr("hillinfer.bench.balance._SETTLING", 6)
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


def _point(share, cpu, csd, helped=0.0):
    return Point(share, share, helped, cpu, csd, step=6.0)


def _line(share):
    return _point(share, cpu=1 + 4 * share, csd=5 - 4 * share)


def test_where_two_lines_meet():
    points = [_line(share) for share in (0.9, 0.6, 0.45, 0.1)]
    assert crossing(points) == pytest.approx(0.5)
    assert crossing(points[:2]) == pytest.approx(0.5)  # both on one side
    assert crossing([_point(s, cpu=1 + s, csd=9 - s) for s in (0.9, 0.1)]) is None
    assert crossing(points[:1]) is None


def test_splits_that_the_host_did_not_keep_to_say_nothing():
    points = [_line(share) for share in (0.9, 0.6, 0.45)]
    assert crossing([*points, *(_point(s, cpu=3.1, csd=3.0, helped=0.3) for s in (0.3, 0.2, 0.1))]) == pytest.approx(
        0.5
    )


@pytest.mark.parametrize("hit", [(0.9,), (0.45, 0.1)])
def test_a_neighbour_during_few_of_the_splits_does_not_move_it(hit):
    points = [_line(share) for share in (0.9, 0.8, 0.7, 0.6, 0.55, 0.45, 0.3, 0.1)]
    for point in points:
        if point.share in hit:
            point.cpu += 3
    assert crossing(points) == pytest.approx(0.5, abs=0.01)


def _sweep(jitter):
    rng = np.random.default_rng(1)
    sweep = {}
    for share in (0.8, 0.6, 0.4, 0.2):
        cpu, csd = (path + jitter * rng.standard_normal(15) for path in (1 + 4 * share, 5 - 4 * share))
        sweep[share] = Steps([share] * 15, [0.0] * 15, cpu.tolist(), csd.tolist(), [6.0] * 15)
    return sweep


def test_the_interval_is_as_wide_as_the_steps_lie_apart():
    widths = []
    for jitter in (0.0, 0.1, 0.4):
        low, high = interval(_sweep(jitter))
        assert low - 1e-9 <= 0.5 <= high + 1e-9
        widths.append(high - low)
    assert widths == sorted(widths)
    assert widths[0] == pytest.approx(0, abs=1e-9)
    assert interval({share: Steps([share], [0.0], [9.0], [1.0], [9.0]) for share in (0.8, 0.2)}) is None


@pytest.mark.parametrize("arguments", [["--steps", "1"], ["--alpha", "0"], ["--shape", "1x1"], ["--tokens", "10"]])
def test_bad_input_is_one_error(arguments, capsys):
    assert run(["bench", "balance", *arguments]) == 2
    assert "error:" in capsys.readouterr().err
