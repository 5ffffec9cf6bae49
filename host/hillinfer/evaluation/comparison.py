"""Several results beside each other: the same items are paired where two files have them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hillinfer.evaluation.bootstrap import Interval, difference_interval, mean_interval
from hillinfer.evaluation.results import ItemResult, Results, Row, Run


@dataclass(frozen=True)
class Change:
    """What changed from the first file to another, for one contender on one task at one context.

    score, nll        mean differences, over ``items`` items (the other file's, where they are not paired)
    *_interval        95 %, bootstrap; None without figures
    paired            whether both files have the same items; if only some of them, those are what is compared
    """

    score: float | None
    score_interval: Interval | None
    nll: float
    nll_interval: Interval
    items: int
    paired: bool


def change(first: Results, other: Results, row: Row) -> Change | None:
    """From the first file to ``other``, one of whose rows is ``row``; None where the first has no such row."""
    before, after = _runs(first, row), _runs(other, row)
    if not before or not after:
        return None
    same = [key for key in after if key in before]
    seed = other.seed
    if same:
        pairs = [(before[key], after[key]) for key in same]
        nll = [mine.nll - theirs.nll for theirs, mine in pairs]
        both = [(mine.score, theirs.score) for theirs, mine in pairs]
        score = [one - other for one, other in both if one is not None and other is not None]
        return Change(
            statistics.mean(score) if score else None,
            mean_interval(score, seed) if score else None,
            statistics.mean(nll),
            mean_interval(nll, seed),
            len(same),
            True,
        )
    mine, theirs = _scores(after), _scores(before)
    nlls = [run.nll for run in after.values()], [run.nll for run in before.values()]
    return Change(
        statistics.mean(mine) - statistics.mean(theirs) if mine and theirs else None,
        difference_interval(mine, theirs, seed) if mine and theirs else None,
        statistics.mean(nlls[0]) - statistics.mean(nlls[1]),
        difference_interval(*nlls, seed),
        len(after),
        False,
    )


def _runs(results: Results, row: Row) -> dict[tuple[str, str], Run]:
    """What a contender did on the items of a row, by the item's identity and tokens."""
    items: Sequence[ItemResult] = [
        item for item in results.items if (item.task, item.context) == (row.task, row.context)
    ]
    runs = {(item.identity, item.prompt): item.run(row.policy, row.budget) for item in items}
    return {key: run for key, run in runs.items() if run is not None}


def _scores(runs: dict[tuple[str, str], Run]) -> list[float]:
    return [run.score for run in runs.values() if run.score is not None]
