"""Host's and device's paths as the split of the scoring moves."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.numbers import form, percent
from hillinfer.figures.palette import BLUE, GREY, OURS, SOFT
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Balance


def picture(report: Balance) -> Picture:
    """Three times per split; where the two paths cross both end together."""
    with style():
        figure, [axes] = panels(height=3.4)
        shares = [point.share for point in report.points]
        for label, name, colour, mark in (
            ("the host's path", "cpu", OURS, "o"),
            ("the device's path", "csd", BLUE, "s"),
            ("the whole step", "step", GREY, "^"),
        ):
            times = [getattr(point, name) * 1e3 for point in report.points]
            axes.plot(shares, times, marker=mark, color=colour, label=label)
        if report.followed is not None:
            axes.axvline(report.followed.share, color=SOFT, linestyle="--", label="where it settled")
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.set_xlabel("share of the tokens that the host scores", loc="right")
        axes.set_ylabel("ms")
        legend_above(figure, axes, columns=4)
    settled = None if report.followed is None else report.followed.share
    says = (
        f"Both paths are equally long where the host scores {percent(report.best_share)}; by the formula that is "
        f"{percent(report.formula_share)}, and it settled at {percent(settled)}."
    )
    return Picture("balance", "Host and device in balance", says, figure, table(report))


def table(report: Balance) -> Table:
    """Milliseconds at every split."""
    rows = [
        (percent(point.share), *(form(seconds * 1e3) for seconds in (point.cpu, point.csd, point.step)))
        for point in report.points
    ]
    return Table(("the host scores", "host's path, ms", "device's path, ms", "step, ms"), rows, words=0)


_MEANS = {
    "balance_error": "paths apart, of the longer one",
    "beta_formula": "β by the formula",
    "beta_best": "β where the measured paths cross",
    "beta_best_low": "its interval (95 %) from",
    "beta_best_high": "its interval (95 %) to",
    "beta_followed": "β it settled at",
    "beta_off": "that, off the best one",
    "beta_off_before": "the formula's, off the best one",
    "step_over_quickest": "its step over the quickest of the fixed splits",
}


def figures_table(report: Balance) -> Table:
    """The figures of the whole run."""
    rows = [(_MEANS.get(name, name), form(value, ".3g")) for name, value in report.summary.items()]
    return Table(("figure", "value"), rows)
