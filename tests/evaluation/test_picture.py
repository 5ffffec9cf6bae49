"""The picture says what the rows say."""

from __future__ import annotations

import pytest

from hillinfer.evaluation.picture import memory_figure
from tests.evaluation.made_up import made_up


def test_the_memory_picture_has_a_mark_per_task_and_policy() -> None:
    figure = memory_figure(made_up([1.0, 0.0]).rows)
    panel = next(axes for axes in figure.axes if axes.get_title() == "1000 tokens")
    marks = {line.get_label(): line.get_xydata().tolist() for line in panel.lines}
    assert marks["full"] == [[1, 0]]
    assert marks["hillinfer@10%"] == [[pytest.approx(110 / 1010), 1.0]]


def test_without_rows_there_is_nothing_to_draw() -> None:
    assert memory_figure([]) is None
