"""Needle in a haystack: how often it was found, by the text's length and its depth; a map per policy and budget."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hillinfer.figures.canvas import WIDTH, style
from hillinfer.figures.contender import name
from hillinfer.figures.numbers import NONE, count, percent, tokens
from hillinfer.figures.palette import INK, SOFT, on
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import EvalRow, Evaluation

_ACROSS = 3
_LOW, _HIGH = "#7a1c3b", "#f6e7b4"  # of a map that is read on any paper: dark where nothing was found


def pictures(report: Evaluation) -> list[Picture]:
    """One for every task with scores by depth."""
    scored = [row for row in report.rows if row.score is not None and row.by_label.get("depth")]
    return [
        _picture(task, [row for row in scored if row.task == task]) for task in dict.fromkeys(r.task for r in scored)
    ]


def by_depth(report: Evaluation) -> list[Table]:
    """The same as a small table per task: policies down, depths across, in a cell the lengths."""
    scored = [row for row in report.rows if row.score is not None and row.by_label.get("depth")]
    return [_small(task, [row for row in scored if row.task == task]) for task in dict.fromkeys(r.task for r in scored)]


def _small(task: str, rows: Sequence[EvalRow]) -> Table:
    contexts = sorted({row.context for row in rows})
    counted = {row.context for row in rows if row.counts}
    depths = sorted({float(depth) for row in rows for depth in row.by_label.get("depth", {})})
    lines = []
    for method in dict.fromkeys(row.method for row in rows):
        scores = _scores(rows, method)
        lines.append(
            (name(method), *(_cell([scores.get((context, depth)) for context in contexts]) for depth in depths))
        )
    lengths = " · ".join(tokens(each) if each in counted else f"({tokens(each)})" for each in contexts)
    title = f"{task}, by depth: found, % at {lengths} tokens; one number where all are alike"
    return Table(("policy", *(percent(depth) for depth in depths)), lines, title=title)


def _cell(scores: Sequence[float | None]) -> str:
    """One figure where all are the same."""
    cells = [NONE if score is None else f"{score * 100:.0f}" for score in scores]
    return cells[0] if len(set(cells)) == 1 else " · ".join(cells)


def _picture(task: str, rows: Sequence[EvalRow]) -> Picture:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize, to_hex
    from matplotlib.figure import Figure

    contexts = sorted({row.context for row in rows})
    depths = sorted({float(depth) for row in rows for depth in row.by_label.get("depth", {})})
    methods = list(dict.fromkeys(row.method for row in rows))
    down = math.ceil(len(methods) / _ACROSS)
    with style():
        colours = LinearSegmentedColormap.from_list("found", [_LOW, "#c96a3d", _HIGH])
        figure = Figure(figsize=(WIDTH, 0.7 + (0.75 + 0.24 * len(depths)) * down), layout="constrained")
        panes = list(figure.subplots(down, _ACROSS, squeeze=False).flat)
        for axes, method in zip(panes, methods, strict=False):
            scores = _scores(rows, method)
            grid = [[scores.get((context, depth), math.nan) for context in contexts] for depth in depths]
            axes.pcolormesh(grid, cmap=colours, vmin=0, vmax=1, edgecolors="none")
            for down_by, line in enumerate(grid):
                for across, score in enumerate(line):
                    if not math.isnan(score):
                        shade = on(to_hex(colours(score)))
                        where = (across + 0.5, down_by + 0.5)
                        axes.annotate(f"{score * 100:.0f}", where, ha="center", va="center", color=shade, fontsize=8.5)
            axes.set_xticks([place + 0.5 for place in range(len(contexts))], [tokens(each) for each in contexts])
            axes.set_yticks([place + 0.5 for place in range(len(depths))], [percent(depth) for depth in depths])
            axes.invert_yaxis()
            axes.grid(visible=False)
            axes.tick_params(length=0, labelcolor=INK)
            axes.set_title(name(method))
        for axes in panes[len(methods) :]:
            axes.set_axis_off()
        if panes:
            panes[0].set_ylabel("depth", color=SOFT)
        shown = ScalarMappable(Normalize(0, 100), colours)
        bar = figure.colorbar(shown, ax=panes, location="bottom", shrink=0.5, aspect=40, pad=0.02)
        bar.set_label("found, %  (across: tokens in the text)")
        bar.outline.set_visible(False)
    means = [(sum(found) / len(found), method) for method in methods if (found := list(_scores(rows, method).values()))]
    says = "Found on average: " + ", ".join(f"{name(method)} {percent(mean)}" for mean, method in means) + "."
    return Picture(f"needles-{task}", f"{task}: found, by length and depth", says, figure, _table(rows, depths))


def _table(rows: Sequence[EvalRow], depths: Sequence[float]) -> Table:
    lines = []
    for row in rows:
        scores = {float(depth): score for depth, score in row.by_label.get("depth", {}).items()}
        cells = [percent(scores[depth]) if depth in scores else NONE for depth in depths]
        lines.append((name(row.method), count(row.context), *cells))
    return Table(("policy", "tokens", *(f"depth {percent(depth)}" for depth in depths)), lines)


def _scores(rows: Sequence[EvalRow], method: tuple[str, float]) -> dict[tuple[int, float], float]:
    return {
        (row.context, float(depth)): score
        for row in rows
        if row.method == method
        for depth, score in row.by_label.get("depth", {}).items()
    }
