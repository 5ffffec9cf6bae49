"""Statements: complete, with a source each, and arithmetic that can be checked."""

from __future__ import annotations

import pytest

from hillinfer.simulation.paper.held import Held, held
from hillinfer.simulation.paper.registry import FIGURES
from hillinfer.simulation.paper.statement import Read, Statement
from hillinfer.simulation.paper.statements import ALL, of_figure


@pytest.mark.parametrize("statement", ALL.values(), ids=ALL)
def test_every_statement_says_where_it_stands_and_how_we_know(statement: Statement) -> None:
    assert statement.says
    assert statement.where
    assert statement.source
    assert statement.figure in FIGURES
    assert statement.has_number == bool(statement.unit)
    if statement.low is not None and statement.high is not None:
        assert statement.low <= statement.high


def test_every_figure_has_a_statement_and_every_name_is_one() -> None:
    assert all(of_figure(figure) for figure in FIGURES)
    assert len(ALL) == sum(len(of_figure(figure)) for figure in FIGURES)
    assert len({each.says for each in ALL.values()}) == len(ALL)  # they are counted by what they say


def test_what_is_in_our_words_alone_is_marked_and_has_no_number() -> None:
    ours = {name for name, each in ALL.items() if each.read is Read.ours}
    assert ours == {"io-walls", "waiting", "extreme", "ablation", "hetero-first-token", "hetero-threshold"}
    assert not any(ALL[name].has_number for name in ours)
    assert {each.read.mark for each in ALL.values()} == {"", "our words", "by our specification"}
    assert not Read.abstract.mark


def test_statements_are_counted_once_however_many_values_they_have() -> None:
    values = [("a", True), ("a", True), ("b", True), ("b", False), ("c", False)]
    assert held(values) == Held(3, 1, 1)


def test_the_reductions_are_the_speedups() -> None:
    for end in ("least", "most"):
        speedup, reduction = ALL[f"speedup-{end}"], ALL[f"reduction-{end}"]
        factor = speedup.low or speedup.high
        stated = reduction.low or reduction.high
        assert factor is not None
        assert stated == pytest.approx(100 * (1 - 1 / factor), abs=0.005)


def _statement(low: float | None, high: float | None) -> Statement:
    return Statement("one", "memory", "says", "where", Read.abstract, "source", low, high, "s")


@pytest.mark.parametrize(
    ("low", "high", "ours", "difference"),
    [
        (20, 50, 35, 0.0),
        (20, 50, 10, -0.5),
        (20, 50, 75, 0.5),
        (None, 25, 3, 0.0),
        (None, 25, 50, 1.0),
        (50, None, 400, 0.0),
        (50, None, 25, -0.5),
        (3, 3, 1.5, -0.5),
        (None, None, 7, None),
    ],
)
def test_a_difference_is_a_share_of_the_bound_that_is_missed(
    low: float | None, high: float | None, ours: float, difference: float | None
) -> None:
    assert _statement(low, high).difference(ours) == difference
