"""Quality against memory: how likely the right answers are with what each policy holds in fast memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hillinfer.evaluation.results import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKS = "osD^v<>PX*hdp"


def memory_figure(rows: Sequence[Row]) -> Figure | None:
    """NLL of the right answer beside the full cache's against fast memory, a panel per context; None without rows."""
    from matplotlib.figure import Figure

    shown = [row for row in rows if row.fast_bytes is not None]
    contexts = sorted({row.context for row in shown})
    if not contexts:
        return None
    figure = Figure(figsize=(4.4 * len(contexts) + 1.8, 4.4), layout="constrained")
    panels = figure.subplots(1, len(contexts), sharey=True, squeeze=False)[0]
    contenders = list(dict.fromkeys(row.contender for row in shown))
    for axes, context in zip(panels, contexts, strict=True):
        here = [row for row in shown if row.context == context]
        whole = max(row.fast_bytes or 0 for row in here if row.policy == "full")
        for number, contender in enumerate(contenders):
            mine = [row for row in here if row.contender == contender]
            if mine:
                axes.plot(
                    [(row.fast_bytes or 0) / whole for row in mine],
                    [row.nll_difference for row in mine],
                    linestyle="",
                    marker=_MARKS[number % len(_MARKS)],
                    label=contender,
                )
        axes.axhline(0, color="grey", linewidth=0.8)
        axes.set_title(f"{context} tokens", fontsize=10)
        axes.set_xlabel("fast memory / the full cache's")
        axes.set_yscale("symlog", linthresh=0.1)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("NLL of the right answer, less the full cache's (a mark per task)")
    handles = {text: handle for axes in panels for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside right upper", fontsize=8)
    return figure
