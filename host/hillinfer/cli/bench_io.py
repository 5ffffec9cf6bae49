"""``hillinfer bench io``: how fast the drive of the cold folder gives rows, and by which way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hillinfer.cli.bench import REPORTS, ColdDir, bench_app, show_table, write_result
from hillinfer.cli.console import human_bytes, stderr, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output
from hillinfer.config import default_cold_dir, parse_size
from hillinfer.errors import SettingError

if TYPE_CHECKING:
    from hillinfer.bench.io import Figure


@bench_app.command("io")
def io_command(
    size: Annotated[str, typer.Option(help="Of the file that is read; larger than the drive's own cache.")] = "2GiB",
    seconds: Annotated[float, typer.Option(help="For each measurement.")] = 0.3,
    quick: Annotated[bool, typer.Option("--quick", help="128 MiB and 0.05 s, for a first look.")] = False,
    cold_dir: ColdDir = None,
    output: Output = REPORTS / "io.json",
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Reads and writes of the cold pool: row sizes, queue depths, engines, gaps merged or not, rows or planes."""
    nbytes = 128 << 20 if quick else parse_size(size)
    if not nbytes or not 0 < seconds < float("inf"):
        raise SettingError(f"cannot use --size {size} and --seconds {seconds:g}: write 2GiB, and more than 0")
    from hillinfer.bench import io

    console = stderr()
    figures: list[Figure] = []
    with console.status("starting") as status:

        def say(doing: str) -> None:
            status.update(doing) if console.is_terminal else console.print(doing)

        folder = (cold_dir or default_cold_dir()).expanduser()
        bench = io.Bench(folder, create=cold_dir is None, size=nbytes, seconds=0.05 if quick else seconds, say=say)
        try:
            figures.extend(bench.run())
        finally:
            bench.close()
    result = io.as_dict(figures, {"folder": str(folder), "size": nbytes, "seconds": seconds, "direct": bench.direct})
    write_result(output, result)
    if as_json:
        write_json(result)
        return
    for table in tables(figures, direct=bench.direct):
        show_table(table)
    for name, value in result["summary"].items():
        stdout().print(f"{name:30} {value:.2f}")
    stdout().print(f"written: {output}")


def tables(figures: Sequence[Figure], *, direct: bool) -> list[Table]:
    """One of random reads, a column per depth; one of everything else."""
    source = "O_DIRECT" if direct else "no O_DIRECT here: figures are the page cache's"
    depths = sorted({each.depth for each in figures if each.kind == "random"})
    scattered = Table(title="single rows at random: thousands per second", caption=source)
    for heading in ("row", "engine", *(f"depth {depth}" for depth in depths), "MiB/s", "µs of CPU"):
        scattered.add_column(heading, justify="left" if heading == "engine" else "right", no_wrap=True)
    rates: dict[tuple[int, str], list[Figure]] = {}
    for each in figures:
        if each.kind == "random":
            rates.setdefault((each.row_bytes, each.engine), []).append(each)
    for (row_bytes, engine), row in sorted(rates.items()):
        best = max(row, key=lambda each: each.per_s)
        cells = [f"{each.per_s / 1e3:.1f}" for each in row]
        scattered.add_row(human_bytes(row_bytes), engine, *cells, f"{best.mib_s:.0f}", f"{best.cpu_us:.1f}")
    others = Table(
        title="everything else", caption=f"{source}; the depth in use, rows are at random but for sequential ones"
    )
    for heading in ("", "row", "engine", "gap", "layout", "rows/s", "requests/s", "KiB each", "MiB/s", "µs of CPU"):
        others.add_column(heading, justify="left" if heading in ("", "engine", "layout") else "right", no_wrap=True)
    rest = [each for each in figures if each.kind != "random"]
    for each, following in zip(rest, [*rest[1:], None], strict=True):
        others.add_row(
            each.kind,
            human_bytes(each.row_bytes),
            each.engine,
            human_bytes(each.gap_bytes) if each.kind == "gaps" else "",
            each.layout,
            f"{each.per_s:,.0f}",
            f"{each.requests_per_s:,.0f}",
            f"{each.request_kib:.1f}",
            f"{each.mib_s:,.0f}",
            f"{each.cpu_us:.1f}",
            end_section=following is None or (following.kind, following.row_bytes) != (each.kind, each.row_bytes),
        )
    return [scattered, others]
