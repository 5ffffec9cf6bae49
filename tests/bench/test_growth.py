"""Growth on a tiny model, and the fit on numbers whose exponent is known."""

from __future__ import annotations

import pytest
import torch

from hillinfer.bench import growth
from hillinfer.figures.growth import picture
from hillinfer.figures.reports import Growth
from tests.tiny import tiny


def test_rows_and_plot(tmp_path) -> None:
    rows = growth.run(tiny(), torch.arange(5, 100), [300, 200], 0.1, tmp_path, lambda _: None)
    assert [row.context for row in rows] == [64, 64, 200, 200, 300, 300]
    assert all((row.added_ms is None) == (row.context == 64) for row in rows)
    result = growth.as_dict(rows, {})
    assert len(result["rows"]) == 6
    assert "<svg" in picture(Growth.model_validate(result)).file()


def test_the_exponent_is_found() -> None:
    rows = [growth.GrowthRow(n, "a", 5.0, 6.0, 0.01 * n**1.25) for n in (1000, 2000, 8000)]
    [fit] = growth.fits([*rows, growth.GrowthRow(64, "a", 5.0, 6.0)])
    assert fit.exponent == pytest.approx(1.25)
    assert fit.factor == pytest.approx(0.01)
    [none] = growth.fits([growth.GrowthRow(1000, "a", 5.0, 6.0, -1.0)])
    assert none.exponent is None


def test_nothing_measurable_is_drawn_all_the_same() -> None:
    """On a busy machine the longer context can come out faster: found where a logarithmic axis had no point to show."""
    rows = [growth.GrowthRow(64, "a", 5.0, 6.0), growth.GrowthRow(200, "a", 4.0, 5.0, -1.0)]
    assert "<svg" in picture(Growth.model_validate(growth.as_dict(rows, {}))).file()
