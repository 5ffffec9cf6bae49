"""How fast keys are scored, as a share of reading the same memory."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, style
from hillinfer.figures.numbers import NONE, form
from hillinfer.figures.palette import BLUE, OURS, SOFT, TEAL
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Scored, Scorer

_COLOURS = {"int8": OURS, "int4": BLUE, "fp16": TEAL}
_HATCHES = {"int8": "", "int4": "///", "fp16": "..."}


def picture(report: Scorer) -> Picture:
    """Bars by queries per KV head, a panel per head dimension; one thread."""
    rows = _one_thread(report)
    dims, groups = sorted({row.head_dim for row in rows}), sorted({row.group for row in rows})
    formats = [name for name in _COLOURS if any(row.key_format == name for row in rows)]
    with style():
        figure, panes = panels(columns=max(1, len(dims)), height=3.2, sharey=True)
        for axes, dim in zip(panes, dims, strict=False):
            for number, name in enumerate(formats):
                mine = {row.group: row.share_of_read for row in rows if (row.head_dim, row.key_format) == (dim, name)}
                axes.bar(
                    [place + (number - (len(formats) - 1) / 2) * 0.27 for place in range(len(groups))],
                    [mine.get(group, 0.0) for group in groups],
                    width=0.25,
                    color=_COLOURS[name],
                    hatch=_HATCHES[name],
                    edgecolor="white",
                    label=name.upper(),
                )
            axes.axhline(1, color=SOFT, linewidth=1.2)
            axes.set_xticks(range(len(groups)), [str(group) for group in groups])
            axes.set_title(f"head dimension {dim}")
            axes.set_xlabel("queries per KV head", loc="right")
            axes.grid(visible=False, axis="x")
        panes[0].set_ylabel("speed, of reading the memory")
        panes[0].yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        legend_above(figure, panes[0])
    best = max(rows, key=lambda row: row.share_of_read, default=None)
    says = (
        "Nothing was measured with one thread."
        if best is None
        else f"Nearest to memory's speed is {best.key_format.upper()} at dimension {best.head_dim}, queries per head: "
        f"{best.group}, at {best.share_of_read:.0%} of it."
    )
    return Picture("scorer", "The scorer beside the memory it reads", says, figure, table(report))


def table(report: Scorer) -> Table:
    """GB/s, in brackets the share of reading; and how many times torch's best, if measured."""
    rows = _one_thread(report)
    groups = sorted({row.group for row in rows})
    lines = []
    for key_format, dim in dict.fromkeys((row.key_format, row.head_dim) for row in rows):
        mine = {row.group: row for row in rows if (row.key_format, row.head_dim) == (key_format, dim)}
        cells = [_cell(mine.get(group)) for group in groups]
        over = " / ".join(form(mine[group].over_torch, ".1f") if group in mine else NONE for group in groups)
        lines.append((f"{key_format.upper()}, d {dim}", *cells, over))
    each = " / ".join(map(str, groups))
    headings = ("keys", *(f"G = {group}" for group in groups), f"torch is slower (G = {each})")
    return Table(headings, lines, title="GB/s of keys with one thread; in brackets: of reading the same memory")


def _one_thread(report: Scorer) -> list[Scored]:
    return [row for row in report.figures if row.threads == 1]


def _cell(row: Scored | None) -> str:
    return NONE if row is None else f"{row.rate:.1f} ({row.share_of_read:.2f})"
