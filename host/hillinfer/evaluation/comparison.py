"""Several results beside each other: the same items are paired where two files have them."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hillinfer.evaluation.bootstrap import Interval, difference_interval
from hillinfer.evaluation.intervals import Value, grouped, nll_interval, score_interval
from hillinfer.evaluation.results import ItemResult, Results, Row, Run


@dataclass(frozen=True)
class Change:
    """What changed from the first file to another, for one contender on one task at one context.

    score, nll        mean differences, over ``items`` items (the other file's, where they are not paired)
    *_interval        95 %, as in a row; None without figures, and where they are too few to tell
    paired            whether both files have the same items; if only some of them, those are what is compared
    """

    score: float | None
    score_interval: Interval | None
    nll: float
    nll_interval: Interval | None
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
        pairs = [(before[key][1], *after[key]) for key in same]
        nll = [Value(mine.nll - theirs.nll, item.shared) for theirs, item, mine in pairs]
        score = [
            Value(mine.score - theirs.score, item.shared)
            for theirs, item, mine in pairs
            if mine.score is not None and theirs.score is not None
        ]
        return Change(
            statistics.mean(each.value for each in score) if score else None,
            score_interval(score, seed) if score else None,
            statistics.mean(each.value for each in nll),
            nll_interval(nll, seed),
            len(same),
            True,
        )
    mine, theirs = _scores(after), _scores(before)
    nlls = _nlls(after), _nlls(before)
    return Change(
        _mean(mine) - _mean(theirs) if mine and theirs else None,
        difference_interval(grouped(mine), grouped(theirs), seed) if mine and theirs else None,
        _mean(nlls[0]) - _mean(nlls[1]),
        difference_interval(grouped(nlls[0]), grouped(nlls[1]), seed),
        len(after),
        False,
    )


_Runs = dict[tuple[str, str], tuple[ItemResult, Run]]


def _runs(results: Results, row: Row) -> _Runs:
    """What a contender did on the items of a row, by the item's identity and tokens."""
    items: Sequence[ItemResult] = [
        item for item in results.items if (item.task, item.context) == (row.task, row.context)
    ]
    runs = {(item.identity, item.prompt): (item, item.run(row.policy, row.budget)) for item in items}
    return {key: (item, run) for key, (item, run) in runs.items() if run is not None}


def _scores(runs: _Runs) -> list[Value]:
    return [Value(run.score, item.shared) for item, run in runs.values() if run.score is not None]


def _nlls(runs: _Runs) -> list[Value]:
    return [Value(run.nll, item.shared) for item, run in runs.values()]


def _mean(values: Sequence[Value]) -> float:
    return statistics.mean(each.value for each in values)
