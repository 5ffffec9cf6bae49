"""Quality against memory in an evaluation: the likelihood of the right answer over bytes in fast memory."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.contender import FULL, name
from hillinfer.figures.numbers import count, form, percent
from hillinfer.figures.palette import SOFT, look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import EvalRow, Evaluation

_LINEAR = 0.1  # nats: below it an axis is linear, as differences have both signs


def picture(report: Evaluation) -> Picture | None:
    """A panel per context, a mark per policy, budget and task; None where bytes or likelihoods are missing."""
    shown = [row for row in report.rows if row.fast_bytes is not None and row.nll_difference is not None]
    contexts = sorted({row.context for row in shown})
    methods = list(dict.fromkeys(name(row.method) for row in shown if row.policy != FULL))
    if not methods:
        return None
    methods.sort(key=lambda method: not method.startswith("hillinfer"))
    shares = {id(row): _share(report, row) for row in shown}
    with style():
        figure, panes = panels(columns=len(contexts), height=4.4, sharey=True)
        for axes, context in zip(panes, contexts, strict=True):
            for number, method in enumerate(methods):
                mine = [row for row in shown if row.context == context and name(row.method) == method]
                points = [(share, row.nll_difference) for row in mine if (share := shares[id(row)]) is not None]
                how = look(number) | {"linestyle": "none"}
                axes.plot([share for share, _ in points], [nll or 0.0 for _, nll in points], label=method, **how)
            axes.axhline(0, color=SOFT, linewidth=1.2)
            axes.set_yscale("symlog", linthresh=_LINEAR)
            axes.set_title(f"{count(context)} tokens")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
            axes.set_xlabel("in fast memory, of the full cache's", loc="right")
        panes[0].set_ylabel("NLL less the full cache's, nats")
        legend_above(figure, panes[0], columns=4)
    worst = {
        method: max((row.nll_difference or 0.0) for row in shown if name(row.method) == method) for method in methods
    }
    said = ", ".join(f"{method} {nll:+.2f}" for method, nll in worst.items())
    says = f"The right answer's negative log-likelihood beside the full cache's; the worst task of each: {said} nats."
    rows = [
        (row.task, count(row.context), name(row.method), percent(shares[id(row)]), form(row.nll_difference, "+.3f"))
        for row in shown
    ]
    table = Table(("task", "tokens", "policy", "fast memory", "NLL difference"), rows)
    return Picture("answers", "Answers against memory", says, figure, table)


def _share(report: Evaluation, row: EvalRow) -> float | None:
    whole = next(
        (
            each.fast_bytes
            for each in report.rows
            if each.policy == FULL and (each.task, each.context) == (row.task, row.context)
        ),
        None,
    )
    return None if not whole or row.fast_bytes is None else row.fast_bytes / whole
