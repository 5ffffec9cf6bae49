"""Cost against context, both on logarithmic axes, with the fitted lines."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, plain_numbers, style
from hillinfer.figures.numbers import NONE, count, form, tokens
from hillinfer.figures.palette import look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Growth


def picture(report: Growth) -> Picture:
    """What a context adds to a step of 64 tokens. A context that adds nothing measurable has no place on the axis."""
    contexts = sorted({row.context for row in report.rows if row.added_ms is not None})
    with style():
        figure, [axes] = panels(height=3.8)
        for number, fit in enumerate(sorted(report.fits, key=lambda fit: not fit.label.startswith("hillinfer"))):
            how = look(number)
            mine = [row for row in report.rows if row.label == fit.label and (row.added_ms or 0) > 0]
            axes.plot(
                [row.context for row in mine],
                [row.added_ms or 0.0 for row in mine],
                **(how | {"linestyle": "none"}),
                label=fit.label,
            )
            if mine and fit.exponent is not None and fit.factor is not None:
                line = [fit.factor * row.context**fit.exponent for row in mine]
                label = f"∝ tokens^{fit.exponent:.2f}"
                axes.plot([row.context for row in mine], line, color=how["color"], linestyle=":", label=label)
        if any((row.added_ms or 0) > 0 for row in report.rows):
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xticks(contexts, [tokens(context) for context in contexts])
            axes.set_xticks([], minor=True)
            plain_numbers(axes.yaxis)
            legend_above(figure, axes, columns=2)
        else:
            axes.set_title("no context here adds anything that can be measured")
        axes.set_xlabel("tokens in the context (random keys)", loc="right")
        axes.set_ylabel("added to a step of 64 tokens, ms")
    says = "; ".join(f"{fit.label}: grows with tokens to the {_exponent(fit)}" for fit in report.fits) + "."
    return Picture("growth", "What a context adds to a step", says, figure, table(report))


def table(report: Growth) -> Table:
    """Added milliseconds per method and context, and the exponent."""
    contexts = sorted({row.context for row in report.rows if row.added_ms is not None})
    rows = []
    for fit in report.fits:
        mine = {row.context: row.added_ms for row in report.rows if row.label == fit.label}
        rows.append((fit.label, *(form(mine.get(context)) for context in contexts), _exponent(fit)))
    headings = ("method", *(count(context) for context in contexts), "exponent")
    return Table(headings, rows, title="ms that a context adds to a step")


def _exponent(fit: Growth.Fit) -> str:
    """With its standard error, where there is one."""
    sure = "" if fit.error is None else f" ± {fit.error:.2f}"
    return NONE if fit.exponent is None else f"{fit.exponent:.2f}{sure}"
