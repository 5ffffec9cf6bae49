"""The statements of both papers."""

from __future__ import annotations

from hillinfer.simulation.paper import heterocache, hillinfer
from hillinfer.simulation.paper.statement import Statement

ALL: dict[str, Statement] = {each.name: each for each in (*hillinfer.STATEMENTS, *heterocache.STATEMENTS)}
"""Every statement by its name, in the order of the papers."""


def of_figure(figure: str) -> list[Statement]:
    """The statements that one figure is held against."""
    return [each for each in ALL.values() if each.figure == figure]
