"""Hardware files: every shipped one is whole, and a wrong one says which number is wrong."""

from __future__ import annotations

import re

import pytest

from hillinfer.errors import SettingError
from hillinfer.simulation import hardware
from hillinfer.simulation.hardware import Number
from tests.simulation.boxes import box

SHIPPED = [name for name in hardware.names() if name != "here"]


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_box_says_where_each_number_is_from(name, tmp_path) -> None:
    found = hardware.load(name)
    assert found.name == name

    def numbers(table):
        for value in table.values():
            if isinstance(value, dict):
                yield from [value] if "value" in value else numbers(value)

    assert all(number["source"] for number in numbers(found.model_dump()))
    path = tmp_path / "box.toml"
    hardware.dump(found, path)
    assert hardware.load(path) == found


def test_a_box_changed() -> None:
    other = box().changed(smartssd__drive__read=Number(5.0, "here"))
    assert other.smartssd.drive.read == 5.0
    assert other.smartssd.drive.read.source == "here"
    with pytest.raises(SettingError, match="did you mean 'read'"):
        box().changed(ssd__reed=Number(5.0, "here"))
    with pytest.raises(SettingError, match="has no gpu__memory"):
        box(gpu=False).changed(gpu__memory=Number(5.0, "here"))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('read = { value = -1, source = "x" }', r"ssd\.read its value must be .* not negative"),
        ('read = { value = 0, source = "x" }', r"ssd\.read its value must be above 0"),
        ('read = { value = "fast", source = "x" }', r"ssd\.read its value must be a number"),
        ("read = { value = 1 }", r"ssd\.read write \{ value"),
        ("read = 1", r"ssd\.read write \{ value"),
        ('read = { value = 1, source = " " }', r"ssd\.read its source must say"),
        ("", r"ssd\.read is missing"),
        ('read = { value = 1, source = "x" }\nspeed = 1', r"ssd\.speed is no field"),
        ("read =", "is no TOML"),
    ],
)
def test_a_wrong_number_is_named(line, told, tmp_path) -> None:
    path = tmp_path / "box.toml"
    hardware.dump(box(gpu=False, card=False), path)
    lines = path.read_text().splitlines()
    at = lines.index("[ssd]") + 2
    assert lines[at].startswith("read")
    path.write_text("\n".join([*lines[:at], line, *lines[at + 1 :]]))
    with pytest.raises(SettingError, match=told):
        hardware.load(path)


def test_a_gpu_needs_its_link(tmp_path) -> None:
    path = tmp_path / "box.toml"
    hardware.dump(box(), path)
    path.write_text(re.sub(r"\[pcie\]\n(.+\n)+", "", path.read_text()))
    with pytest.raises(SettingError, match=r"box\.toml: it has a gpu and no pcie"):
        hardware.load(path)


def test_names(tmp_path, monkeypatch) -> None:
    with pytest.raises(SettingError, match="did you mean 'paper'"):
        hardware.load("papr")
    with pytest.raises(SettingError, match="cannot be read"):
        hardware.load(tmp_path / "none.toml")
    monkeypatch.setenv("HILLINFER_CACHE", str(tmp_path))
    with pytest.raises(SettingError, match="hillinfer simulate measure"):
        hardware.load("here")
