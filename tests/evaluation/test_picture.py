"""Pictures say what the rows say."""

from __future__ import annotations

from pathlib import Path

import pytest

from hillinfer.errors import SettingError
from hillinfer.evaluation.picture import draw, memory_figure, needle_figure
from tests.evaluation.made_up import made_up


def test_the_needle_map_has_the_scores_by_depth_and_context() -> None:
    figure = needle_figure(made_up([1.0, 0.0, 0.5]).rows)
    titles = {axes.get_title(): axes for axes in figure.axes if axes.get_title()}
    assert titles.keys() == {"full", "hillinfer@10%"}
    assert titles["hillinfer@10%"].images[0].get_array().tolist() == [[1, 1], [0, 0], [0.5, 0.5]]


def test_the_memory_picture_has_a_mark_per_task_and_policy() -> None:
    figure = memory_figure(made_up([1.0, 0.0]).rows)
    panel = next(axes for axes in figure.axes if axes.get_title() == "1000 tokens")
    marks = {
        line.get_label(): line.get_xydata().tolist() for line in panel.lines if not line.get_label().startswith("_")
    }
    assert marks["full"] == [[1, 0]]
    assert marks["hillinfer@10%"] == [[pytest.approx(110 / 1010), 1.0]]


def test_files_go_beside_the_results(tmp_path: Path) -> None:
    written = draw(made_up([1.0]), tmp_path / "eval.json")
    assert [path.name for path in written] == ["eval-memory.svg", "eval-needle.svg"]
    assert all("<svg" in path.read_text() for path in written)
    with pytest.raises(SettingError, match="cannot be written"):
        draw(made_up([1.0]), tmp_path / "missing" / "eval.json")


def test_without_needles_there_is_no_map() -> None:
    results = made_up([1.0])
    for row in results.rows:
        row.task = "passkey"
    assert needle_figure(results.rows) is None
    assert memory_figure([]) is None
