"""Sensitivity: of results whose dependence is known."""

from __future__ import annotations

import pytest

from hillinfer.simulation.hardware import Hardware, load
from hillinfer.simulation.paper.sensitivity import effects, hangs_on, speeds


def test_a_result_hangs_on_what_it_is_made_of() -> None:
    box = load("paper")

    def reading(hardware: Hardware) -> float:
        return 1e9 / hardware.ssd.read + 1e6 / hardware.dram.bandwidth

    first, second, *_ = effects(box, reading)
    assert first.number == "ssd.read"
    assert first.up == pytest.approx(1 / 1.2 - 1, rel=1e-3)
    assert first.down == pytest.approx(1 / 0.8 - 1, rel=1e-3)
    assert second.number == "dram.bandwidth"
    assert hangs_on(box, reading) == "ssd.read ±20% moves it by -17% and +25%"
    assert hangs_on(box, lambda _: 1.0) == "no speed of the box moves it by 1 %"


def test_speeds_are_no_sizes() -> None:
    names = [name for name, _ in speeds(load("paper"))]
    assert "smartssd__drive__read" in names
    assert not any(name.endswith(("capacity", "cards", "__memory")) for name in names)
