"""How pictures look, and an empty one to draw on; matplotlib without pyplot: no window system, no figures kept."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hillinfer.errors import SettingError
from hillinfer.figures.palette import INK, LINE, SOFT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

WIDTH = 7.2
"""Inches: a page's column."""

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be found, read aloud and scaled
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "grid.color": LINE,
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    "legend.fontsize": 9.5,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.unicode_minus": True,
}


class NoMatplotlib(SettingError):
    """The package that draws is not installed."""


def check_matplotlib() -> None:
    """NoMatplotlib without the package that draws."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise NoMatplotlib("pictures need matplotlib: pip install 'hillinfer[figures]'") from None


@contextlib.contextmanager
def style(salt: str = "hillinfer") -> Iterator[None]:
    """Everything drawn or saved within looks alike, and the same data gives the same bytes."""
    check_matplotlib()
    import matplotlib

    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": salt}):
        yield


def panels(rows: int = 1, columns: int = 1, height: float = 3.4, **how: Any) -> tuple[Figure, list[Axes]]:
    """An empty figure of the page's width, ``height`` inches high, and its axes row by row. Within ``style()``."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **how)
    return figure, list(grid.flat)


def legend_above(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """One legend for all panels, above them, where it covers no data; in fewer columns where they are too wide."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    renderer = FigureCanvasAgg(figure).get_renderer()  # type: ignore[no-untyped-call]  # matplotlib's
    for ncols in range(columns, 0, -1):
        how: dict[str, Any] = {"loc": "outside upper left", "handlelength": 2.4, "columnspacing": 1.4}
        legend = figure.legend(handles, labels, ncols=ncols, **how)
        if ncols == 1 or legend.get_window_extent(renderer).width <= figure.bbox.width:
            return
        legend.remove()


def plain_numbers(axis: Axis) -> None:
    """1, 2, 5, 10 on a logarithmic axis, and not powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
