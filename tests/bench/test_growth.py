"""Growth on a tiny model, and the fit on numbers whose exponent is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hillinfer.bench import growth
from hillinfer.cli import run
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
    assert (none.exponent, none.points) == (None, 0)


def test_the_exponents_error_is_that_of_repeated_runs() -> None:
    """Its standard error, against how far the exponents of many such runs lie apart; the true one is in the middle."""
    rng, lengths = np.random.default_rng(0), [1024 * 2**n for n in range(6)]
    found = []
    for _ in range(400):
        noise = np.exp(0.1 * rng.standard_normal(len(lengths)))
        rows = [growth.GrowthRow(n, "a", 5.0, 6.0, 0.01 * n * e) for n, e in zip(lengths, noise.tolist(), strict=True)]
        found += growth.fits(rows)
    assert all(fit.points == 6 for fit in found)
    apart = np.std([fit.exponent for fit in found])
    assert np.mean([fit.exponent for fit in found]) == pytest.approx(1, abs=0.01)
    assert np.mean([(fit.error or 0) ** 2 for fit in found]) ** 0.5 == pytest.approx(apart, rel=0.1)


def test_two_contexts_have_a_line_and_no_error() -> None:
    [fit] = growth.fits([growth.GrowthRow(n, "a", 5.0, 6.0, 0.01 * n) for n in (1000, 2000)])
    assert (fit.exponent, fit.error) == (pytest.approx(1), None)


def test_the_table_says_how_sure_an_exponent_is() -> None:
    rows = [growth.GrowthRow(n, "a", 5.0, 6.0, a) for n, a in ((1000, 1.0), (2000, 2.2), (4000, 3.9))]
    drawn = picture(Growth.model_validate(growth.as_dict(rows, {})))
    assert "0.98 ± 0.09" in str(drawn.table.rows)


@pytest.mark.parametrize("contexts", ["400.5,800", "64,128", "512", "512,512", ""])
def test_bad_contexts_are_one_error(contexts, capsys) -> None:
    assert run(["bench", "growth", "--contexts", contexts]) == 2
    assert "error:" in capsys.readouterr().err


def test_half_a_token_is_no_context_of_bench_decode_either(capsys) -> None:
    assert run(["bench", "decode", "--contexts", "400.5"]) == 2
    assert "whole numbers" in capsys.readouterr().err


def test_nothing_measurable_is_drawn_all_the_same() -> None:
    """On a busy machine the longer context can come out faster: found where a logarithmic axis had no point to show."""
    rows = [growth.GrowthRow(64, "a", 5.0, 6.0), growth.GrowthRow(200, "a", 4.0, 5.0, -1.0)]
    assert "<svg" in picture(Growth.model_validate(growth.as_dict(rows, {}))).file()
