"""How fast single rows are read at random places of the cold pool's disk."""

from __future__ import annotations

from hillinfer.figures.canvas import legend_above, panels, plain_numbers, style
from hillinfer.figures.numbers import count, form
from hillinfer.figures.palette import look
from hillinfer.figures.picture import Picture, Table
from hillinfer.figures.reports import Io


def picture(report: Io) -> Picture:
    """Rows per second over requests in flight, a line per row size; dashed: by threads and not by io_uring."""
    rows = [row for row in report.figures if row.kind == "random"]
    with style():
        figure, [axes] = panels(height=3.8)
        for number, size in enumerate(sorted({row.row_bytes for row in rows})):
            for engine in dict.fromkeys(row.engine for row in rows):
                mine = sorted(
                    (row for row in rows if (row.row_bytes, row.engine) == (size, engine)), key=lambda row: row.depth
                )
                how = look(number) | {"linestyle": "-" if engine == "io_uring" else "--"}
                axes.plot(
                    [row.depth for row in mine],
                    [row.per_s / 1e3 for row in mine],
                    label=f"{count(size)} bytes, {engine}",
                    **how,
                )
        if rows:
            depths = sorted({row.depth for row in rows})
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xticks(depths, [str(depth) for depth in depths])
            axes.set_xticks([], minor=True)
            plain_numbers(axes.yaxis)
        axes.set_xlabel("requests in flight", loc="right")
        axes.set_ylabel("rows per second, thousands")
        legend_above(figure, axes, columns=2)
    best = max(rows, key=lambda row: row.per_s, default=None)
    says = "No random reads." if best is None else f"At most {best.per_s / 1e3:.0f} thousand rows a second."
    return Picture("io", "Random reads of rows", says, figure, table(report))


def table(report: Io) -> Table:
    """Every measurement."""
    rows = [
        (row.kind, row.engine, count(row.row_bytes), count(row.depth), count(row.per_s), form(row.mib_s, ".0f"))
        for row in report.figures
    ]
    return Table(("reads", "engine", "row, bytes", "in flight", "rows/s", "MiB/s"), rows, words=2)
