"""Who takes part in an evaluation: a policy at a budget."""

from __future__ import annotations

from hillinfer.figures.numbers import percent

FULL = "full"
"""The policy that all others are beside: the full cache."""


def name(method: tuple[str, float]) -> str:
    """``hillinfer 10 %``; the full cache has no budget."""
    policy, budget = method
    return policy if budget >= 1 else f"{policy} {percent(budget)}"
