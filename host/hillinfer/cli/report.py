"""``hillinfer report``: one page of all that was measured, and its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hillinfer.cli.bench import REPORTS, progress
from hillinfer.cli.console import complain, stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.errors import SettingError

if TYPE_CHECKING:
    from hillinfer.page.chapter import Section

EPILOG = "\n\n".join(
    [
        "[bold]Examples[/]",
        "hillinfer report    [dim]of what hillinfer bench, eval and simulate left in build/reports[/]",
        "hillinfer report --pictures build/figures    [dim]every picture as SVG and PNG as well[/]",
        "hillinfer report --reports docs/measured --output measured.html",
    ]
)


def report_command(
    reports: Annotated[Path, typer.Option(help="Folder of the JSON that other commands wrote.")] = REPORTS,
    output: Annotated[
        Path | None, typer.Option(help="Where the page goes.", show_default="report.html beside the reports")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="A folder for every picture as SVG (both themes) and PNG, too.")
    ] = None,
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """One HTML page of all that was measured: pictures, tables, and which command makes each again.

    The page is complete in itself: no script, no network, light and dark, and a text for every picture. What was not
    measured yet says which command does it; a report that cannot be read, or drawn, says why, and the others are shown.
    """
    if not reports.is_dir():
        raise SettingError(f"there is no folder {reports}: make bench fills it, or name another with --reports")
    from hillinfer.page.write import html, sections
    from hillinfer.whole_file import write_whole

    page = reports / "report.html" if output is None else output
    with progress() as say:
        filled = sections(reports, say)
    try:
        write_whole(page, html(filled, reports))
        drawn = [] if pictures is None else _draw(filled, pictures)
    except OSError as error:
        raise SettingError(
            f"{error.filename or page} cannot be written ({error.strerror}): name another place with --output or "
            "--pictures"
        ) from None
    if as_json:
        write_json({"page": page, "pictures": drawn, "sections": [_told(section) for section in filled]})
        return
    for section in filled:
        if section.found.broken:
            complain(f"{section.found.problem} To make it anew: {section.chapter.source.command}")
        for problem in section.undrawn:
            complain(f"{section.chapter.title}: {problem}")
    shown = sum(section.found.content is not None for section in filled)
    stdout().print(f"{shown} of {len(filled)} sections have figures; hillinfer report --json lists them")
    if pictures is not None:
        stdout().print(f"written: {len(drawn)} pictures in {pictures}")
    stdout().print(f"written: {page}")


def _draw(filled: Sequence[Section], folder: Path) -> list[Path]:
    from hillinfer.whole_file import write_whole

    drawn = []
    for section in filled:
        for picture in section.pictures:
            write_whole(folder / f"{picture.name}.svg", picture.file())
            write_whole(folder / f"{picture.name}.png", picture.png())
            drawn += [folder / f"{picture.name}.svg", folder / f"{picture.name}.png"]
    return drawn


def _told(section: Section) -> dict[str, Any]:
    found, chapter = section.found, section.chapter
    return {
        "section": chapter.key,
        "source": chapter.source.file,
        "state": "shown" if found.content is not None else "broken" if found.broken else "missing",
        "problem": found.problem or None,
        "command": chapter.source.command,
        "undrawn": list(section.undrawn),
        "pictures": [picture.name for picture in section.pictures],
    }
