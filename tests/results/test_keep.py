"""What is kept of a report is what tables and pictures read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hillinfer.page.sources import find
from scripts.results.keep import keep, written
from scripts.results.render import sources
from tests.page.made_up import every_report


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return every_report(tmp_path_factory.mktemp("reports"))


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.file)
def test_tables_and_pictures_read_the_same(source, reports, tmp_path):
    assert keep(source, reports, tmp_path)
    once = find(source, tmp_path).content
    assert once.model_dump(exclude={"measured"}) == rounded(
        find(source, reports).content.model_dump(exclude={"measured"})
    )
    assert once.measured.remarks == []
    text = (tmp_path / source.file).read_text()
    assert keep(source, tmp_path, tmp_path)
    assert (tmp_path / source.file).read_text() == text


def rounded(value):
    """To five digits."""
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(rounded(each) for each in value)
    return float(f"{value:.5g}") if isinstance(value, float) else value


def test_a_row_is_a_line():
    text = written({"a": [{"b": 1 / 3}, {"b": 2}], "c": {"d": [1, 2]}, "e": [], "f": "g"})
    assert json.loads(text) == {"a": [{"b": 0.33333}, {"b": 2}], "c": {"d": [1, 2]}, "e": [], "f": "g"}
    assert '  {"b":0.33333},\n  {"b":2}\n' in text
