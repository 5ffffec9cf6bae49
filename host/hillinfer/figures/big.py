"""Decoding from a KV cache larger than memory: every method's time beside HillInfer's."""

from __future__ import annotations

from collections.abc import Sequence

from hillinfer.figures.canvas import legend_above, panels, plain_numbers, style
from hillinfer.figures.numbers import count, form, percent
from hillinfer.figures.palette import look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Big, BigRow

_OURS = "hillinfer"


def picture(report: Big) -> Picture:
    """A line per shape, context and batch; a mark per method, at its time, on a logarithmic axis."""
    lines = _lines(report)
    methods = sorted(dict.fromkeys(row.method for row in _shown(report)), key=lambda name: not name.startswith(_OURS))
    with style():
        figure, [axes] = panels(height=1.5 + 0.42 * len(lines))
        for number, method in enumerate(methods):
            mine = [(place, row) for place, rows in enumerate(reversed(lines)) for row in rows if row.method == method]
            how = look(number) | {"linestyle": "none"}
            axes.plot([row.layer_ms or 0 for _, row in mine], [place for place, _ in mine], label=method, **how)
        axes.set_xscale("log")
        plain_numbers(axes.xaxis)
        axes.set_yticks(range(len(lines)), [_name(rows[0]) for rows in reversed(lines)])
        axes.set_ylim(-0.6, len(lines) - 0.4)
        axes.set_xlabel("one layer's attention for a token, the batch together, ms", loc="right")
        legend_above(figure, axes, columns=3)
    over = [_over(rows, "full offload") for rows in lines]
    known = [each for each in over if each is not None]
    says = (
        f"HillInfer is {min(known):.1f} to {max(known):.1f} times as fast as full offload."
        if known
        else "Full offload and HillInfer were not both measured."
    )
    return Picture("big", "A KV cache larger than memory", says, figure, _all(lines))


def tables(report: Big) -> list[Table]:
    """One per shape, context and batch."""
    return [_table(rows, _name(rows[0])) for rows in _lines(report)]


def _shown(report: Big) -> list[BigRow]:
    """Baselines where they capture as much as HillInfer, and what has no such form."""
    return [row for row in report.rows if row.equal != "alpha" and row.layer_ms is not None]


def _lines(report: Big) -> list[list[BigRow]]:
    names = dict.fromkeys((row.shape, row.context, row.sequences) for row in _shown(report))
    return [[row for row in _shown(report) if (row.shape, row.context, row.sequences) == name] for name in names]


def _name(row: BigRow) -> str:
    return f"{row.shape}, {count(row.context)} tokens, batch {row.sequences}"


def _over(rows: Sequence[BigRow], method: str) -> float | None:
    times = {row.method: row.layer_ms for row in rows}
    ours, other = times.get(_OURS), times.get(method)
    return None if not ours or other is None else other / ours


def _cells(rows: Sequence[BigRow]) -> list[tuple[str, ...]]:
    return [
        (
            row.method,
            percent(row.budget, 1),
            form(row.captured, ".3f"),
            form(row.layer_ms, ".1f"),
            form(_over(rows, row.method)),
            form(row.reads_ms, ".1f"),
            percent(row.hot_hit_rate),
            percent(row.moved_fraction, 1),
        )
        for row in rows
    ]


_HEADINGS = ("method", "attended", "mass", "ms", "× HillInfer's", "reads, ms", "hit rate", "moved per step")


def _table(rows: Sequence[BigRow], title: str) -> Table:
    return Table(_HEADINGS, _cells(rows), title=title)


def _all(lines: Sequence[Sequence[BigRow]]) -> Table:
    rows = [(_name(line[0]), *cells) for line in lines for cells in _cells(line)]
    return Table(("line", *_HEADINGS), rows, words=2)
