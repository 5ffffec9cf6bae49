"""``hillinfer bench all``: every benchmark, and the figures the project holds itself to in one file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hillinfer.cli.bench import REPORTS, ColdDir, bench_app, figure, show_table, table_of, write_result
from hillinfer.cli.console import stderr, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.errors import SettingError, nearest

if TYPE_CHECKING:
    from hillinfer.bench.parts import Outcome


@bench_app.command("all")
def all_command(
    only: Annotated[str, typer.Option(help="Parts to run, by commas; default: all.")] = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="Leave out parts whose result is in the folder already.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Try every part out, in minutes: the figures that count are not measured.")
    ] = False,
    cold_dir: ColdDir = None,
    folder: Annotated[Path, typer.Option(help="Where results go, bench.json with the summary among them.")] = REPORTS,
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """All parts, each in a process of its own: one that fails is reported, and the others go on.

    Half an hour on two cores with nothing else running. The summary has every figure's ratio within its own part's
    run; a figure that could not be measured is null, with a reason. Beside it stands what stops it on this machine,
    as the same run measured that: the figure at the bound, and how many times as long as at the bound it took. The exit
    code is 1 if a part failed.
    """
    from hillinfer.bench.parts import PARTS, merged, run_parts

    chosen = [part.strip() for part in only.split(",") if part.strip()] or list(PARTS)
    for part in chosen:
        if part not in PARTS:
            raise SettingError(f"unknown part {part!r}{nearest(part, list(PARTS))}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"{folder} cannot be made ({error.strerror}): name another with --folder") from None
    outcomes = run_parts(chosen, folder, resume=resume, quick=quick, cold_dir=cold_dir, say=_say, silent=as_json)
    result = merged(folder, outcomes)
    write_result(folder / "bench.json", result)
    if as_json:
        write_json(result)
    else:
        _show(result, outcomes)
        stdout().print(f"written: {folder / 'bench.json'}")
    if any(outcome.failure for outcome in outcomes):
        raise typer.Exit(1)


def _show(result: dict[str, Any], outcomes: Sequence[Outcome]) -> None:
    headings = ("figure", "value", "at its bound", "× the bound's time", "the bound, or why it is missing")
    table = table_of("summary", "ratios, each within the run of its part", *headings)
    for name, value in result["summary"].items():
        bound = result["bounds"].get(name, {})
        at, distance = (figure(bound.get(each), ".3g") for each in ("value", "distance"))
        table.add_row(name, figure(value, ".4g"), at, distance, result["reasons"].get(name) or bound.get("bound", ""))
    show_table(table)
    for outcome in outcomes:
        took = "there already" if outcome.reused else f"{outcome.seconds:.0f} s"
        stdout().print(f"{outcome.part}: {outcome.failure or took}", style="red" if outcome.failure else None)


def _say(said: str) -> None:
    stderr().print(said, markup=False, soft_wrap=True)
