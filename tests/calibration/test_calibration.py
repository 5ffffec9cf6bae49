"""Measuring on a device that is opened for it, and the file the figures are kept in."""

from __future__ import annotations

import json
import stat

import pytest
import torch

from hillinfer.calibration import file
from hillinfer.calibration.figure import Figure, repeat
from hillinfer.calibration.fingerprint import fingerprint
from hillinfer.calibration.measure import STEPS, Measured, measure
from hillinfer.config import StoreSettings
from hillinfer.errors import CalibrationError, SettingError
from hillinfer.kv.geometry import Geometry

GEOMETRY = Geometry(2, 2, 2, 16, torch.float32)
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _calibration(where, speed=1e9):
    figure = Figure.of([speed, speed * 1.1, speed * 1.2])
    return file.Calibration.now(where, dict.fromkeys(STEPS, figure), 0.1)


def _here(tmp_path, **settings):
    return fingerprint(StoreSettings(cold_dir=tmp_path, **settings), GEOMETRY, CPU)


@pytest.mark.parametrize("device", ["software", "native"])
def test_all_four_speeds_are_measured_and_nothing_is_left(tmp_path, device):
    seen = []
    settings = StoreSettings(cold_dir=tmp_path, device=device)
    measured = measure(settings, GEOMETRY, CPU, seconds=0.01, tokens=256, on_step=seen.append)
    assert seen == ["f_c", "B_c", "B_s"]
    assert tuple(measured.figures) == STEPS
    assert all(figure.median > 0 and figure.repeats >= 5 for figure in measured.figures.values())
    assert measured.rates.f_c == measured.figures["f_c"].median
    assert list(tmp_path.iterdir()) == []


def test_a_figure_is_a_median_and_two_spreads():
    figure = Figure.of([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (figure.median, figure.mad, figure.iqr, figure.spread) == (3, 1, 2, 2 / 3)
    assert Figure.of([5.0]).iqr == 0
    calls = []
    figures = repeat(lambda i: calls.append(i) or [(4, 2.0), (9, 3.0)], 0.0, least=3)
    assert [(figure.median, figure.repeats) for figure in figures] == [(2.0, 3), (3.0, 3)]
    assert calls == sorted(set(calls))


def test_a_busy_machine_is_told_by_spread_and_by_load():
    steady, wild = Figure.of([1.0] * 5), Figure.of([1.0, 1.0, 2.0, 3.0, 3.0])
    assert Measured(dict.fromkeys(STEPS, steady), 0.1).busy() == []
    assert Measured(dict.fromkeys(STEPS, steady), None).busy() == []
    assert Measured({**dict.fromkeys(STEPS, steady), "f_s": wild}, 0.1).busy() == ["f_s spreads by 100%"]
    assert "1.5 processes per core" in Measured(dict.fromkeys(STEPS, steady), 1.5).busy()[0]


def test_what_is_written_is_found_again_by_its_owner_alone(tmp_path, cache):
    here = _here(tmp_path)
    assert file.find(here) is None
    path = file.write(_calibration(here))
    assert file.find(here).rates.b_s == pytest.approx(1.1e9)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.write(_calibration(here, 2e9))
    assert file.find(here).rates.f_s == pytest.approx(2.2e9)
    assert list((cache / "calibration").iterdir()) == [path]
    assert file.find(_here(tmp_path, device="native")) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": "2.4.0"}, "stale .kernel 2.4.0 here"),
        ({"processor": "Z80", "cores": 1}, "stale .processor Z80 here.*; cores 1 here"),
        ({"drive": "ext2 on /dev/fd0 (2:0)"}, "stale .drive ext2"),
    ],
)
def test_of_another_machine_it_is_stale(tmp_path, change, message):
    here = _here(tmp_path)
    file.write(_calibration(here))
    with pytest.raises(CalibrationError, match=f"{message}.*run hillinfer calibrate again"):
        file.find(here.model_copy(update=change))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("half a fi", "it is not JSON"),
        ("[]", "not a whole calibration"),
        ('{"version": 2}', "another version"),
        (json.dumps({"version": 1, "format": "hillinfer calibration"}), "not a whole calibration"),
    ],
)
def test_a_damaged_file_is_one_message(tmp_path, text, message):
    here = _here(tmp_path)
    path = file.write(_calibration(here))
    path.write_text(text)
    with pytest.raises(CalibrationError, match=f"{message}.*run hillinfer calibrate again"):
        file.find(here)


@pytest.mark.parametrize("figure", [0, -1, "fast", None])
def test_a_speed_that_is_none_is_refused(tmp_path, figure):
    here = _here(tmp_path)
    path = file.write(_calibration(here))
    content = json.loads(path.read_text())
    content["figures"]["f_s"]["median"] = figure
    path.write_text(json.dumps(content))
    with pytest.raises(CalibrationError, match=r"figures\.f_s\.median"):
        file.find(here)


def test_a_folder_that_takes_nothing_is_named(tmp_path, cache):
    cache.write_text("a file, not a folder")
    with pytest.raises(CalibrationError, match="HILLINFER_CACHE"):
        file.write(_calibration(_here(tmp_path)))


@pytest.mark.parametrize("balance", ["none", "-1", "", "nan", "inf", -0.5])
def test_what_is_no_balance_is_told(balance):
    with pytest.raises(SettingError, match="neither auto nor off nor a number"):
        StoreSettings(balance=balance)
