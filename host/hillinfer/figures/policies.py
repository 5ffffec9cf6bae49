"""Quality against memory: one panel per context length, one mark per policy and budget."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.numbers import NONE, count, form, percent
from hillinfer.figures.palette import look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Policies, PolicyRow

FULL = "full"
_FLOOR = 1e-5  # nats: below it a divergence is rounding, and a logarithm has no zero


def picture(report: Policies) -> Picture:
    """KL to the full cache over bytes in fast memory. Dotted: policies that drop tokens for good."""
    lengths = contexts(report)
    names = _names(report)
    with style():
        figure, panes = panels(columns=max(1, len(lengths)), height=4.6, sharey=True)
        for axes, context in zip(panes, lengths, strict=False):
            whole = full(report, context)
            for number, name in enumerate(names):
                mine = [(row.fast(whole), row) for row in _of(report, name, context) if row.kl is not None]
                points = [(fast, max(row.kl or 0.0, _FLOOR)) for fast, row in mine if fast is not None]
                drops = any(row.drops for _, row in mine)
                axes.plot(
                    [fast for fast, _ in points],
                    [kl for _, kl in points],
                    label=f"{name} (drops)" if drops else name,
                    **(look(number) | {"linestyle": ":" if drops else "-"}),
                )
            axes.set_yscale("log")
            axes.set_title(f"{count(context)} tokens")
            axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
            axes.set_xlabel("in fast memory, of the whole KV cache", loc="right")
        panes[0].set_ylabel("KL to the full cache, nats per token")
        legend_above(figure, panes[0], columns=4)
    says = " ".join(_best(report, context) for context in lengths)
    return Picture("policies", "Quality against memory", says, figure, _all(report))


def table(report: Policies, context: int) -> Table:
    """Policies down, budgets across."""
    whole = full(report, context)
    budgets = sorted({row.budget for row in report.rows if row.policy != FULL})
    rows = []
    for name in _names(report):
        mine = {row.budget: row for row in _of(report, name, context)}
        cells: list[str] = []
        for budget in budgets:
            cells += _cells(mine.get(budget), whole)
        drops = any(row.drops for row in mine.values())
        rows.append((f"{name} (drops)" if drops else name, *cells))
    headings = ["policy"]
    for budget in budgets:
        headings += [f"KL at {percent(budget)}", "hidden", "fast", "ms"]
    return Table(headings, rows, title=f"{count(context)} tokens")


def _cells(row: PolicyRow | None, whole: PolicyRow | None) -> list[str]:
    if row is None or row.kl is None:
        return [NONE] * 4
    return [_kl(row.kl), percent(row.passkey), percent(row.fast(whole)), form(row.ms_per_token, ".0f")]


def _kl(value: float) -> str:
    """Four figures behind the point, none before it if it is a zero."""
    return f"{value:.3f}" if value >= 1 else f"{value:.4f}".removeprefix("0")


def _all(report: Policies) -> Table:
    rows = [
        (row.policy, count(row.context), percent(row.budget), *_cells(row, full(report, row.context)), row.note)
        for row in report.rows
    ]
    headings = ("policy", "tokens", "budget", "KL", "hidden numbers", "fast memory", "ms", "why there is none")
    return Table(headings, rows)


def _best(report: Policies, context: int) -> str:
    """Which policy is nearest to the full cache with at most a fifth kept or attended."""
    rows = [row for row in report.rows if (row.context, row.policy != FULL) == (context, True) and row.budget <= 0.2]
    known = [row for row in rows if row.kl is not None]
    if not known:
        return f"At {count(context)} tokens nothing was measured at a fifth or less."
    best = min(known, key=lambda row: row.kl or 0.0)
    return f"At {count(context)} tokens and a budget of 20 % or less {best.policy} is the nearest to the full cache."


def contexts(report: Policies) -> list[int]:
    """Context lengths, as measured."""
    return list(dict.fromkeys(row.context for row in report.rows))


def _names(report: Policies) -> list[str]:
    names = dict.fromkeys(row.policy for row in report.rows if row.policy != FULL)
    return sorted(names, key=lambda name: name != "hillinfer")


def _of(report: Policies, name: str, context: int) -> list[PolicyRow]:
    return sorted(
        (row for row in report.rows if (row.policy, row.context) == (name, context)), key=lambda row: row.budget
    )


def full(report: Policies, context: int) -> PolicyRow | None:
    """The full cache's row."""
    return next((row for row in report.rows if (row.policy, row.context) == (FULL, context)), None)
