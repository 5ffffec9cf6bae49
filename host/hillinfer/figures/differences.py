"""Tasks: each policy's score less the full cache's on the same items, with its interval."""

from __future__ import annotations

from collections.abc import Sequence

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.contender import FULL, name
from hillinfer.figures.numbers import NONE, count, form, percent, tokens
from hillinfer.figures.palette import SOFT, look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import EvalRow, Evaluation


def pictures(report: Evaluation) -> list[Picture]:
    """One, where any task has a difference with an interval."""
    rows = [row for row in report.rows if row.difference is not None and row.interval is not None and row.counts]
    rows = [row for row in rows if row.policy != FULL]
    return [_picture(report, rows)] if rows else []


def tables(report: Evaluation) -> list[Table]:
    """One per context: policies down, tasks across. The picture's table has intervals, likelihoods and bytes."""
    return [_overview([row for row in report.rows if row.context == context]) for context in _contexts(report)]


def _contexts(report: Evaluation) -> list[int]:
    return sorted({row.context for row in report.rows})


def _overview(rows: Sequence[EvalRow]) -> Table:
    """Scores, with an arrow down where the interval of the difference is below 0; of texts, the KL in nats."""
    tasks = list(dict.fromkeys(row.task for row in rows))
    scored = {row.task for row in rows if row.score is not None}
    counted = {row.task for row in rows if row.counts}
    lines = []
    for method in dict.fromkeys(row.method for row in rows):
        mine = {row.task: row for row in rows if row.method == method}
        lines.append((name(method), *(_score(mine.get(task)) for task in tasks)))
    headings = ("policy", *(f"{task} (does not count)" if task in scored - counted else task for task in tasks))
    title = f"{count(rows[0].context)} tokens: scores; ↓: below the full cache by more than chance; of texts, the KL"
    return Table(headings, lines, title=title)


def _score(row: EvalRow | None) -> str:
    if row is None:
        return NONE
    if row.score is None:
        return NONE if row.kl is None else f"{row.kl:.4f}"
    below = row.interval is not None and row.interval[1] < 0
    return percent(row.score) + (" ↓" if below else "")


def _picture(report: Evaluation, rows: Sequence[EvalRow]) -> Picture:
    tasks = list(dict.fromkeys((row.task, row.context) for row in rows))
    methods = list(dict.fromkeys(row.method for row in rows))
    spread = 0.8 / max(1, len(methods))
    with style():
        figure, [axes] = panels(height=1.6 + len(tasks) * max(0.34, 0.085 * len(methods)))
        for number, method in enumerate(methods):
            mine = {(row.task, row.context): row for row in rows if row.method == method}
            offset = (number - (len(methods) - 1) / 2) * spread
            found = [(place, mine[task]) for place, task in enumerate(tasks) if task in mine]
            places = [place + offset for place, _ in found]
            how = look(number)
            for place, (_, row) in zip(places, found, strict=True):
                if row.interval is not None:
                    axes.plot(row.interval, (place, place), color=how["color"], linewidth=1.6)
            marks = [row.difference or 0.0 for _, row in found]
            axes.plot(marks, places, label=name(method), **(how | {"linestyle": "none"}))
        axes.axvline(0, color=SOFT, linewidth=1.2)
        axes.set_yticks(range(len(tasks)), [f"{task}, {tokens(context)}" for task, context in tasks])
        axes.set_ylim(len(tasks) - 0.5, -0.5)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value * 100:+.0f}" if value else "0")
        axes.set_xlabel(
            "score less the full cache's, points; line: 95 % interval of the paired difference", loc="right"
        )
        axes.grid(visible=False, axis="y")
        legend_above(figure, axes, columns=4)
    return Picture("differences", "Scores beside the full cache", _says(rows), figure, _all(report.rows))


def _says(rows: Sequence[EvalRow]) -> str:
    ours = [row for row in rows if row.policy == "hillinfer"]
    within = sum(row.interval is not None and row.interval[1] >= 0 for row in ours)
    return f"HillInfer is not below the full cache, within its interval, on {within} of {len(ours)} tasks and budgets."


_HEADINGS = ("policy", "score", "difference", "95 % interval", "NLL difference", "KL", "items", "counts")


def _cells(row: EvalRow) -> tuple[str, ...]:
    interval = NONE if row.interval is None else " … ".join(f"{end * 100:+.1f}" for end in row.interval)
    return (
        name(row.method),
        percent(row.score, 1),
        NONE if row.difference is None else f"{row.difference * 100:+.1f}",
        interval,
        form(row.nll_difference, "+.3f"),
        form(row.kl, ".4f"),
        count(row.items),
        "yes" if row.counts else "no",
    )


def _all(rows: Sequence[EvalRow]) -> Table:
    lines = [(row.task, count(row.context), *_cells(row)) for row in rows]
    return Table(("task", "tokens", *_HEADINGS), lines, words=1)
