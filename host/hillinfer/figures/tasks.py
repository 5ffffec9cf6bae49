"""An evaluation in words and in full: what retrieval lost, and every figure of a task."""

from __future__ import annotations

from collections.abc import Sequence

from hillinfer.figures.contender import FULL, name
from hillinfer.figures.numbers import NONE, count, form, percent
from hillinfer.figures.picture import Table
from hillinfer.figures.reports import EvalRow, Evaluation

OURS = "hillinfer"


def retrieval(report: Evaluation) -> list[str]:
    """A sentence per budget of HillInfer's: where its interval allows for no loss on retrieval, and where not."""
    said = []
    for budget in sorted({row.budget for row in report.rows if row.policy == OURS}):
        mine = [row for row in _counted(report) if row.method == (OURS, budget)]
        if not mine:
            continue
        lost = [f"{_where(row)} ({(row.difference or 0) * 100:+.1f} points)" for row in mine if not _score_holds(row)]
        nll = [f"{_where(row)} ({form(row.nll_difference, '+.3f')} nats)" for row in mine if not _nll_holds(row)]
        said.append(
            f"**HillInfer at {percent(budget)}**: of {len(mine)} retrieval tasks and lengths that count, the 95 % "
            f"interval allows for no loss of score on {_but(len(mine), lost)}, of the right answer's likelihood on "
            f"{_but(len(mine), nll)}."
        )
    return said


def retrieval_table(report: Evaluation) -> Table:
    """The same of every policy, as counts."""
    lines = []
    for method in dict.fromkeys(row.method for row in report.rows if row.policy != FULL):
        mine = [row for row in _counted(report) if row.method == method]
        if not mine:
            continue
        mean = sum(row.difference or 0.0 for row in mine) / len(mine)
        all_of = next((each for each in report.retrieval if (each.policy, each.budget) == method), None)
        lines.append(
            (
                name(method),
                count(len(mine)),
                count(sum(map(_score_holds, mine))),
                count(sum(map(_nll_holds, mine))),
                f"{mean * 100:+.1f}",
                NONE if all_of is None else _between(all_of.difference, all_of.interval, 100, ".1f", False),
                NONE if all_of is None else _between(all_of.nll_difference, all_of.nll_interval, 1, ".3f", False),
                NONE if all_of is None else f"{count(all_of.items)} of {count(all_of.texts)}",
            )
        )
    headings = (
        "policy",
        "retrieval rows",
        "score not below",
        "NLL not above",
        "mean difference, points",
        "all items together, points",
        "NLL, nats",
        "items of texts",
    )
    known = [at for at in range(len(headings)) if any(line[at] != NONE for line in lines)]
    return Table([headings[at] for at in known], [[line[at] for at in known] for line in lines])


def uncounted(report: Evaluation) -> list[str]:
    """Tasks and lengths on which the full cache itself scores under one half, with its score."""
    return [
        f"{_where(row)} ({percent(row.score)})"
        for row in report.rows
        if row.policy == FULL and row.score is not None and not row.counts
    ]


def undefined(report: Evaluation) -> list[str]:
    """Why a policy has no figures, once for each context."""
    notes = ((name(row.method), row.context, row.note) for row in report.rows if row.note)
    return [f"{who} at {count(context)} tokens: {note.rstrip('.')}" for who, context, note in dict.fromkeys(notes)]


def tables(report: Evaluation) -> list[Table]:
    """One per task: contexts and policies down. A score in brackets does not count."""
    return [
        _table(task, [row for row in report.rows if row.task == task])
        for task in dict.fromkeys(row.task for row in report.rows)
    ]


_HEADINGS = (
    "tokens",
    "policy",
    "items",
    "score",
    "difference, points",
    "NLL difference, nats",
    "KL, nats",
    "fast, MiB (of the full cache's)",
)


def _table(task: str, rows: Sequence[EvalRow]) -> Table:
    whole = {row.context: row.fast_bytes for row in rows if row.policy == FULL}
    lines = [_cells(row, whole.get(row.context)) for row in rows]
    known = [at for at in range(len(_HEADINGS)) if any(line[at] != NONE for line in lines)]
    return Table([_HEADINGS[at] for at in known], [[line[at] for at in known] for line in lines], words=2, title=task)


def _cells(row: EvalRow, whole: float | None) -> tuple[str, ...]:
    score = percent(row.score)
    full = row.policy == FULL
    return (
        count(row.context),
        name(row.method),
        count(row.items) if row.items else NONE,
        score if row.counts or row.score is None else f"({score})",
        NONE if full else _between(row.difference, row.interval, 100, ".1f", row.few_texts),
        NONE if full else _between(row.nll_difference, row.nll_interval, 1, ".3f", row.few_texts),
        form(row.kl, ".4f"),
        _fast(row.fast_bytes, whole),
    )


def _between(value: float | None, interval: tuple[float, float] | None, times: float, how: str, few: bool) -> str:
    """``-8.3 (-20.0 … 0.0)``; with a star where the interval is about these texts alone."""
    if value is None:
        return NONE
    told = f"{value * times:+{how}}"
    if interval is None:
        return told
    ends = " … ".join(f"{end * times:+{how}}" for end in interval)
    return f"{told} ({ends}){'*' if few else ''}"


def _fast(held: float | None, whole: float | None) -> str:
    if held is None:
        return NONE
    share = f" ({percent(held / whole)})" if whole else ""
    return f"{held / 2**20:.1f}{share}"


def _counted(report: Evaluation) -> list[EvalRow]:
    return [row for row in report.rows if row.retrieval and row.counts and row.difference is not None]


def _score_holds(row: EvalRow) -> bool:
    return row.interval is not None and row.interval[1] >= 0


def _nll_holds(row: EvalRow) -> bool:
    return row.nll_interval is None or row.nll_interval[0] <= 0  # None: too few items to tell


def _where(row: EvalRow) -> str:
    return f"{row.task} at {count(row.context)}"


def _but(of: int, lost: Sequence[str]) -> str:
    """``all``, or how many and which not."""
    return f"{of - len(lost)}, but not on {', '.join(lost)}" if lost else "all"
