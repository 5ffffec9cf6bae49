"""Resident memory beside the budgets it was given, and hit rates by text: tables of what is measured by hand."""

from __future__ import annotations

from hillinfer.figures.numbers import NONE, count, percent
from hillinfer.figures.picture import Table
from hillinfer.figures.reports import Locality, Memory


def table(report: Memory) -> Table:
    """MiB, a range where several runs differ."""
    rows = [
        (
            row.case,
            NONE if row.kv_mib is None else count(row.kv_mib),
            NONE if row.budgets_mib is None else count(row.budgets_mib),
            _range(row.grew_mib),
            _range(row.over_mib),
        )
        for row in report.rows
    ]
    return Table(("model", "KV cache, MiB", "budgets, MiB", "resident memory grew by, MiB", "over the budgets"), rows)


def locality_table(report: Locality) -> Table:
    """Hit rate of the hot pool by text."""
    return Table(("text", "hit rate"), [(row.text, percent(row.hot_hit_rate, 1)) for row in report.rows])


def _range(ends: tuple[float, float] | None) -> str:
    return NONE if ends is None else f"{ends[0]:g}–{ends[1]:g}"
