"""Functional coverage: what counts as hit, what is missing, and that it survives being written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb.coverage import POINTS, Coverage, page_offset_class

LAUNCH = {"format": "int8", "reduce": "sum", "G": "3", "d": "64", "size": "1024", "stall": "none"}


def test_a_launch_falls_into_a_bin_of_each_point_it_has() -> None:
    coverage = Coverage()
    coverage.record(LAUNCH)
    assert coverage.hits("format", "int8") == 1
    assert coverage.hits("format × size", "int8 × 1024") == 1
    assert coverage.hits("format", "int4") == 0
    assert coverage.hits("kept", "all") == 0


def test_values_without_a_bin_are_not_counted() -> None:
    coverage = Coverage()
    coverage.record(LAUNCH | {"d": "63"})
    assert ("d", "63") not in {(point, value) for point, values in POINTS.items() for value in values}
    assert all(coverage.hits("d", value) == 0 for value in POINTS["d"])


def test_empty_bins_are_named_until_they_are_hit() -> None:
    coverage = Coverage()
    assert len(coverage.empty()) == sum(len(bins) for bins in POINTS.values())
    coverage.record(LAUNCH)
    assert ("reduce × size", "sum × 1024") not in coverage.empty()
    assert ("reduce × size", "max × 1024") in coverage.empty()
    assert ("kind", "real") in coverage.empty()
    assert ("kind", "real") not in coverage.empty(without="real")


def test_runs_are_added_up(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        coverage = Coverage()
        coverage.record(LAUNCH)
        coverage.save(tmp_path / name)
    total = Coverage.total([tmp_path / "a.json", tmp_path / "b.json", tmp_path / "missing.json"])
    assert total.hits("size × stall", "1024 × none") == 2


def test_the_table_names_what_is_missing() -> None:
    coverage = Coverage()
    coverage.record(LAUNCH)
    (line,) = [line for line in coverage.table().splitlines() if line.startswith("reduce  ")]
    assert line.split() == ["reduce", "1/2", "0", "max"]


@pytest.mark.parametrize(
    ("offset", "expected"),
    [(0, "0"), (64, "64"), (128, "first half"), (2048, "second half"), (3968, "second half"), (4032, "4032")],
)
def test_page_offsets(offset: int, expected: str) -> None:
    assert page_offset_class(offset) == expected
