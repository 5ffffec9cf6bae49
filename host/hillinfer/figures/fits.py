"""Which context fits a box, and at what speed."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, plain_numbers, style
from hillinfer.figures.numbers import count, short, tokens
from hillinfer.figures.palette import look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import FitRow, Fits


def picture(report: Fits) -> Picture:
    """A step over the context, a line per method and batch; a line ends where the method does not fit any more."""
    batches = sorted({row.batch for row in report.rows})
    methods = sorted(dict.fromkeys(row.method for row in report.rows), key=lambda name: name != "hillinfer")
    contexts = sorted({row.context for row in report.rows})
    with style():
        figure, panes = panels(columns=max(1, len(batches)), height=3.9, sharey=True)
        for axes, batch in zip(panes, batches, strict=False):
            for number, method in enumerate(methods):
                mine = sorted(_of(report, method, batch), key=lambda row: row.context)
                times = [(row.context, row.ms_per_step) for row in mine if row.ms_per_step is not None]
                axes.plot([at for at, _ in times], [ms for _, ms in times], label=method, **look(number))
            axes.set_xscale("log", base=2)
            if any(row.ms_per_step for row in report.rows):  # a logarithm of nothing is an error
                axes.set_yscale("log")
                plain_numbers(axes.yaxis)
            axes.set_xticks(contexts, [tokens(context) for context in contexts])
            axes.set_xticks([], minor=True)
            axes.set_title(f"batch {batch}")
            axes.set_xlabel("tokens in the context", loc="right")
        panes[0].set_ylabel("a decode step, ms")
        legend_above(figure, panes[0], columns=5)
    fitting = [row for row in report.rows if row.method == "hillinfer" and row.ms_per_step is not None]
    longest = max(fitting, key=lambda row: row.context, default=None)
    says = f"{report.model} on the box “{report.hardware}”. "
    if longest is not None:
        says += f"HillInfer at {count(longest.context)} tokens: {short(longest.ms_per_step or 0.0)} ms a step."
    return Picture("fits", "Which context fits, at what speed", says, figure, _table(report))


def _table(report: Fits) -> Table:
    rows = [
        (
            row.method,
            count(row.context),
            str(row.batch),
            "does not fit" if row.ms_per_step is None else f"{short(row.ms_per_step)} ms",
            row.why_not or row.where,
        )
        for row in report.rows
    ]
    return Table(("method", "tokens", "batch", "a step", "where the KV cache lies"), rows)


def _of(report: Fits, method: str, batch: int) -> list[FitRow]:
    return [row for row in report.rows if (row.method, row.batch) == (method, batch)]
