"""From items to rows: means by task and context, beside the full cache on the same items."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from hillinfer.evaluation.contender import FULL
from hillinfer.evaluation.intervals import Value, nll_interval, score_interval, units
from hillinfer.evaluation.results import ItemResult, Results, Retrieval, Row, Run

COUNTS_FROM = 0.5
"""What the full cache must score on a task for it to say something about policies."""


def rows_of(
    items: Sequence[ItemResult],
    undefined: Mapping[tuple[str, float, str, int], str],
    retrieval: Mapping[str, bool],
    seed: int,
) -> list[Row]:
    """One row per task, context and contender, in the order they came in, the full cache's first.

    undefined   why a policy (name, budget) has no figures on some items, or all, of a task at a context
    retrieval   of each task by name, whether it is one
    """
    rows = []
    for task, context in dict.fromkeys((item.task, item.context) for item in items):
        here = [item for item in items if (item.task, item.context) == (task, context)]
        who = dict.fromkeys((run.policy, run.budget) for item in here for run in item.runs)
        for policy, budget in who:
            row = Row(policy=policy, budget=budget, task=task, context=context, retrieval=retrieval[task])
            _fill(row, here, seed)
            if row.items < len(here):
                why = undefined[policy, budget, task, context]
                row.note = f"on {len(here) - row.items} of {len(here)} items: {why}"
            rows.append(row)
        for (policy, budget, *where), why in undefined.items():
            if where == [task, context] and (policy, budget) not in who:
                rows.append(Row(policy=policy, budget=budget, task=task, context=context, note=why))
    return rows


def with_intervals(results: Results) -> Results:
    """The same results with the intervals that this version makes of their items."""
    rows = [row.model_copy() for row in results.rows]
    for row in rows:
        both = _both(row, [item for item in results.items if (item.task, item.context) == _where(row)])
        if both:
            _judge(row, both, results.seed)
    return results.model_copy(update={"rows": rows, "retrieval": together(rows, results.items, results.seed)})


def together(rows: Sequence[Row], items: Sequence[ItemResult], seed: int) -> list[Retrieval]:
    """Each policy on all retrieval rows that count."""
    counted: dict[tuple[str, float], list[Row]] = {}
    for row in rows:
        if row.policy != FULL and row.retrieval and row.counts:
            counted.setdefault((row.policy, row.budget), []).append(row)
    return [_together(mine, items, seed) for mine in counted.values()]


def _together(rows: Sequence[Row], items: Sequence[ItemResult], seed: int) -> Retrieval:
    nll: list[Value] = []
    score: list[Value] = []
    for row in rows:
        for item, run, full in _both(row, [each for each in items if (each.task, each.context) == _where(row)]):
            text = f"{item.task} {item.context} {item.shared}"
            nll.append(Value(run.nll - full.nll, text))
            if run.score is not None and full.score is not None:
                score.append(Value(run.score - full.score, text))
    return Retrieval(
        policy=rows[0].policy,
        budget=rows[0].budget,
        rows=len(rows),
        items=len(nll),
        texts=len({each.text for each in nll}),
        difference=statistics.mean(each.value for each in score),
        interval=score_interval(score, seed),
        nll_difference=statistics.mean(each.value for each in nll),
        nll_interval=nll_interval(nll, seed),
    )


def _where(row: Row) -> tuple[str, int]:
    return row.task, row.context


_Both = tuple[ItemResult, Run, Run]
"""An item, what a contender did, and what the full cache did."""


def _both(row: Row, items: Sequence[ItemResult]) -> list[_Both]:
    pairs = [(item, item.run(row.policy, row.budget), item.run(FULL, 1.0)) for item in items]
    return [(item, run, full) for item, run, full in pairs if run is not None and full is not None]


def _fill(row: Row, items: Sequence[ItemResult], seed: int) -> None:
    both = _both(row, items)
    runs = [run for _, run, _ in both]
    row.items, row.cut = len(both), sum(item.cut > 0 for item, _, _ in both)
    row.nll, row.kl = statistics.mean(run.nll for run in runs), statistics.mean(run.kl for run in runs)
    scored = [(run.score, full.score) for _, run, full in both if run.score is not None and full.score is not None]
    if scored:
        row.score, row.full_score = (statistics.mean(side) for side in zip(*scored, strict=True))
        row.counts = row.full_score >= COUNTS_FROM
    row.device_bytes = max(run.device_bytes for run in runs)
    row.hot_bytes = max(run.hot_bytes for run in runs)
    row.cold_bytes = max(run.cold_bytes for run in runs)
    row.by_label = _by_label([(item, run) for item, run, _ in both])
    row.labels = list(row.by_label)
    _judge(row, both, seed)


def _judge(row: Row, both: Sequence[_Both], seed: int) -> None:
    """Differences to the full cache, and how sure they are; the full cache's own are none."""
    texts = [item.shared for item, _, _ in both]
    row.texts, row.interval_of = len(set(texts)), units(texts)
    nll = [Value(run.nll - full.nll, item.shared) for item, run, full in both]
    score = [
        Value(run.score - full.score, item.shared)
        for item, run, full in both
        if run.score is not None and full.score is not None
    ]
    row.nll_difference = statistics.mean(each.value for each in nll)
    row.nll_interval = (0.0, 0.0) if row.policy == FULL else nll_interval(nll, seed)
    if score:
        row.difference = statistics.mean(each.value for each in score)
        row.interval = (0.0, 0.0) if row.policy == FULL else score_interval(score, seed)


def _by_label(pairs: Sequence[tuple[ItemResult, Run]]) -> dict[str, dict[str, float]]:
    sorted_out: dict[str, dict[str, list[float]]] = {}
    for item, run in pairs:
        for label, value in item.labels.items():
            named = f"{value:g}" if isinstance(value, float) else str(value)
            figure = run.nll if run.score is None else run.score
            sorted_out.setdefault(label, {}).setdefault(named, []).append(figure)
    return {
        label: {value: statistics.mean(figures) for value, figures in values.items()}
        for label, values in sorted_out.items()
    }
