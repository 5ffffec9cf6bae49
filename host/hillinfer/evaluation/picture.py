"""Pictures of an evaluation: quality against memory, and which needles each policy still finds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hillinfer.errors import SettingError
from hillinfer.evaluation.results import Results, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKS = "osD^v<>PX*hdp"
_NEEDLE = "needle"


def check_pictures() -> None:
    """SettingError without the package that draws."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SettingError("the pictures need matplotlib: pip install 'hillinfer[figures]'") from None


def draw(results: Results, path: Path) -> list[Path]:
    """Write what there is to be seen beside ``path``: its name with -memory.svg and -needle.svg for an ending."""
    pictures = {"memory": memory_figure(results.rows), "needle": needle_figure(results.rows)}
    written = []
    for name, figure in pictures.items():
        if figure is not None:
            written.append(path.with_name(f"{path.stem}-{name}.svg"))
            try:
                figure.savefig(written[-1])
            except OSError as error:
                raise SettingError(f"{written[-1]} cannot be written ({error.strerror})") from None
    return written


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


def needle_figure(rows: Sequence[Row]) -> Figure | None:
    """Score by context and depth, a panel per contender; None without needles."""
    from matplotlib.figure import Figure

    found = [row for row in rows if row.task == _NEEDLE and "depth" in row.by_label]
    contexts = sorted({row.context for row in found})
    depths = sorted({depth for row in found for depth in row.by_label["depth"]}, key=float)
    contenders = list(dict.fromkeys(row.contender for row in found))
    if not found:
        return None
    columns = min(3, len(contenders))
    lines = -(-len(contenders) // columns)
    figure = Figure(figsize=(3.6 * columns + 1, 2.7 * lines + 0.6), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False)
    image: Any = None
    for axes, contender in zip(panels.flat, contenders, strict=False):
        scores = {row.context: row.by_label["depth"] for row in found if row.contender == contender}
        grid = [[scores.get(context, {}).get(depth, float("nan")) for context in contexts] for depth in depths]
        image = axes.imshow(grid, vmin=0, vmax=1, cmap="RdYlGn", aspect="auto")
        axes.set_title(contender, fontsize=10)
        axes.set_xticks(range(len(contexts)), [str(context) for context in contexts], fontsize=8)
        axes.set_yticks(range(len(depths)), [f"{float(depth):.0%}" for depth in depths], fontsize=8)
    for axes in panels.flat[len(contenders) :]:
        axes.set_visible(False)
    figure.supxlabel("tokens", fontsize=9)
    figure.supylabel("depth of the needle", fontsize=9)
    figure.colorbar(image, ax=list(panels.flat), label="found")
    return figure
