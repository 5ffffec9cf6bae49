"""Cost against context, both on logarithmic axes, with the fitted lines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hillinfer.bench.growth import GrowthRow, fits


def draw(rows: Sequence[GrowthRow], path: Path) -> None:
    """Write the plot, in the format that the file's ending names. ImportError without matplotlib."""
    from matplotlib.figure import Figure  # without pyplot: no window system, no global state

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    for fit, mark in zip(fits(rows), "os^v", strict=False):
        mine = [row for row in rows if row.label == fit.label and row.added_ms is not None and row.added_ms > 0]
        if not mine:  # a context that adds nothing measurable has no place on a logarithmic axis
            continue
        contexts = [row.context for row in mine]
        [line] = axes.plot(contexts, [row.added_ms or 0.0 for row in mine], mark, label=fit.label)
        if fit.exponent is not None and fit.factor is not None:
            axes.plot(
                contexts,
                [fit.factor * context**fit.exponent for context in contexts],
                color=line.get_color(),
                linestyle=":",
                label=f"∝ tokens^{fit.exponent:.2f}",
            )
    if axes.lines:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
    axes.set_xlabel("tokens in the context")
    axes.set_ylabel("what the context adds to a step, ms")
    axes.grid(visible=True, alpha=0.3)
    if axes.lines:
        axes.legend(frameon=False, fontsize="small")
    else:
        axes.set_title("no context here adds anything that can be measured", fontsize="small")
    figure.savefig(path)
