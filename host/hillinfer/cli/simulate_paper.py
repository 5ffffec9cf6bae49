"""``hillinfer simulate paper``: the papers' figures beside ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from hillinfer.cli.bench import progress, write_result
from hillinfer.cli.console import stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.output import Output
from hillinfer.cli.simulate import simulate_app

if TYPE_CHECKING:
    from hillinfer.simulation.paper.figure import Figure


@simulate_app.command("paper")
def paper_command(
    figure: Annotated[
        list[str] | None, typer.Option("--figure", help="Only this one; may be given again. --list names them.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Name the figures, and stop.")] = False,
    hardware: Annotated[str, typer.Option(help="Box of HillInfer's figures: a name or a file.")] = "paper",
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="First record the runs again that figures are made of (SmolLM2, minutes), for this user."
        ),
    ] = False,
    output: Output = Path("build/reports/simulate-paper.json"),
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """What HillInfer's and HeteroCache's papers state, ours beside it, the difference, and what it hangs on.

    Timed on the papers' boxes by the timing model, fed with recorded runs of the engine (SmolLM2 on English text, 1920
    + 128 tokens, scaled to each model). Nothing is fitted: every speed of a box has a source.
    """
    from hillinfer.simulation.hardware import load
    from hillinfer.simulation.paper import report
    from hillinfer.simulation.paper.registry import FIGURES, find

    if listed:
        if as_json:
            write_json({"figures": list(FIGURES)})
        else:
            stdout().print("\n".join(FIGURES))
        return
    box = load(hardware)
    names = figure or []
    for name in names:
        find(name)
    with progress() as say:
        if record:
            _record(say)
        found = report.figures(names, box, say)
    result = report.as_dict(found, box)
    write_result(output, result)
    if as_json:
        write_json(result)
        return
    console = stdout()
    console.width = max(console.width, 170)
    for each in found:
        console.print(figure_table(each))
        for note in each.notes:
            console.print(f"[dim]{note}[/]", soft_wrap=True)
    console.print(
        f"{result['reproduced']} of {result['compared']} values are within {result['close']:.0%} of what is stated. "
        f"{report.statements(found)}"
    )
    console.print(f"written: {output}")


def figure_table(figure: Figure) -> Table:
    """Rows beside the paper's statements."""
    from hillinfer.simulation.paper.report import outcome, stated

    table = Table(title=f"{figure.name}: {figure.title}", title_justify="left")
    for heading in ("what", "paper", "ours", "difference", "why"):
        table.add_column(heading, justify="right" if heading in ("ours", "difference") else "left")
    for row in figure.rows:
        table.add_row(row.what, stated(row), f"{row.ours:.4g} {row.unit}", outcome(row), row.why)
    return table


def _record(say: Callable[[str], None]) -> None:

    from hillinfer.cli.bench import document_tokens
    from hillinfer.models import load
    from hillinfer.simulation.paper import runs, setting
    from hillinfer.simulation.paper.figures.hetero import THRESHOLDS_FILE
    from hillinfer.simulation.paper.record import record
    from hillinfer.simulation.paper.record_thresholds import record_thresholds

    loaded = load(None)
    ids = document_tokens(loaded.tokenizer, None, runs.LONG_TOKENS + runs.LONG_STEPS)
    given = (loaded.model, loaded.name, ids)
    record(*given, (*runs.ALL, *runs.LONG), runs.folder(), say)
    record_thresholds(*given, runs.TOKENS, runs.STEPS // 2, runs.folder() / THRESHOLDS_FILE, say)
    runs.recorded.cache_clear()
    setting.work.cache_clear()
    setting.average_work.cache_clear()
