"""A prompt's time in closed form."""

from __future__ import annotations

import pytest

from hillinfer.errors import SettingError
from hillinfer.simulation.hardware import load
from hillinfer.simulation.prefill import prefill_seconds
from hillinfer.simulation.shape import named


def test_products_bound_a_long_prompt_and_the_drive_what_is_written() -> None:
    box, shape = load("paper"), named("opt-6.7b")
    assert box.gpu is not None
    layers, head = 32 * (4 * 4096 * 4096 + 2 * 4096 * 16384), 50272 * 4096  # the head is for the last token alone
    products = 2 * layers * 1920 + 2 * head + 2 * 32 * 4096 * 1920**2
    assert prefill_seconds(box, shape, tokens=1920, sequences=1) == pytest.approx(products / box.gpu.flops)
    assert prefill_seconds(box, shape, tokens=1920, sequences=1, to_drive=100e9) == pytest.approx(50)  # 2 GB/s


def test_without_a_gpu_it_is_not_known() -> None:
    box = load("paper").model_copy(update={"gpu": None})
    with pytest.raises(SettingError, match="no GPU"):
        prefill_seconds(box, named("opt-6.7b"), tokens=1, sequences=1)
