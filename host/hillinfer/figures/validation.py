"""The timing model against measured steps, on the machine it ran on."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, plain_numbers, style
from hillinfer.figures.numbers import count, form, percent
from hillinfer.figures.palette import LINE, SOFT, look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Simulated

WITHIN = 0.2
"""Share by which a simulated step may be off."""


def picture(report: Simulated) -> Picture:
    """Simulated over measured milliseconds; on the line they agree, in the band they are within a fifth."""
    rows = report.rows
    with style():
        figure, [axes] = panels(height=4.2)
        times = [time for row in rows for time in (row.measured_ms, row.simulated_ms)] or [1.0]
        ends = [min(times) * 0.8, max(times) * 1.25]
        axes.fill_between(
            ends,
            [end * (1 - WITHIN) for end in ends],
            [end * (1 + WITHIN) for end in ends],
            color=LINE,
            linewidth=0,
            label="within a fifth",
        )
        axes.plot(ends, ends, color=SOFT, linewidth=1)
        for number, policy in enumerate(dict.fromkeys(row.policy for row in rows)):
            mine = [row for row in rows if row.policy == policy]
            axes.plot(
                [row.measured_ms for row in mine],
                [row.simulated_ms for row in mine],
                label=policy,
                **(look(number) | {"linestyle": "none"}),
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        plain_numbers(axes.xaxis)
        plain_numbers(axes.yaxis)
        axes.set_xlabel("measured step, ms", loc="right")
        axes.set_ylabel("simulated step, ms")
        legend_above(figure, axes, columns=4)
    return Picture("validation", "The timing model against measured steps", says(report), figure, table(report))


def says(report: Simulated) -> str:
    """How many settings are close, and how far off the others."""
    errors = [abs(row.error) for row in report.rows]
    if not errors:
        return "Nothing was simulated."
    good = sum(error <= WITHIN for error in errors)
    without = "".join(
        f" Left out: {each.policy}, {each.context:,} tokens, {percent(each.hot_share)} in DRAM ({each.why})."
        for each in report.left_out
    )
    return (
        f"{good} of {len(errors)} simulated steps are within a fifth of measured ones; the mean error is "
        f"{sum(errors) / len(errors):.0%}, the largest {max(errors):.0%}.{without}"
    )


def table(report: Simulated) -> Table:
    """Every setting."""
    rows = [
        (
            row.policy,
            count(row.context),
            percent(row.hot_share),
            form(row.measured_ms, ".1f"),
            form(row.simulated_ms, ".1f"),
            f"{row.error:+.0%}",
        )
        for row in report.rows
    ]
    return Table(("policy", "tokens", "hot pool", "measured, ms", "simulated, ms", "error"), rows)
