"""Milliseconds against context: the methods on the box as it is, and HillInfer on its variants."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

from hillinfer.simulation.advice.fit import Cell
from hillinfer.simulation.advice.report import Advice
from hillinfer.simulation.advice.variants import AS_IT_IS
from hillinfer.whole_file import write_whole


def draw(advice: Advice, path: Path) -> None:
    """Write the plot, of the smallest batch, in the format that the file's ending names. OSError if it cannot be."""
    from matplotlib.figure import Figure  # without pyplot: no window system, no global state

    batch = min(cell.batch for cell in advice.cells)
    figure = Figure(figsize=(10.4, 4.4), layout="constrained")
    methods, variants = figure.subplots(1, 2, sharey=True)
    for name in dict.fromkeys(cell.method for cell in advice.cells):
        _line(methods, name, advice.cells, name, batch)
    first = advice.cells[0].method
    for name, cells in advice.of_variants.items():
        _line(variants, name, cells, first, batch, thick=name == AS_IT_IS)
    for axes, title in (
        (methods, f"{advice.shape.name} on {advice.hardware.name}, batch {batch}"),
        (variants, f"{first} with another part"),
    ):
        axes.set_title(title, fontsize="medium")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("tokens in the context")
        axes.grid(visible=True, alpha=0.3)
        if axes.lines:
            axes.legend(frameon=False, fontsize="small")
    methods.set_ylabel("ms per step, simulated")
    written = io.BytesIO()
    figure.savefig(written, format=path.suffix.removeprefix(".").lower())
    write_whole(path, written.getvalue())


def _line(axes: object, label: str, cells: Sequence[Cell], method: str, batch: int, *, thick: bool = False) -> None:
    points = [(each.context, each.ms) for each in cells if (each.method, each.batch) == (method, batch) and each.ms]
    if points:
        x, y = zip(*points, strict=True)
        axes.plot(x, y, marker="o", markersize=4, linewidth=2.5 if thick else 1.2, label=label)  # type: ignore[attr-defined]
