"""``hillinfer doctor``: what this machine has for a device, what is missing, and how to get it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from hillinfer.cli.console import stderr, stdout, write_json
from hillinfer.cli.generate import DeviceKeys
from hillinfer.cli.options import AsJson, Debug

if TYPE_CHECKING:
    from hillinfer.doctor import Finding

NOT_READY = 1
"""Exit code when the chosen device cannot run: the command itself did what it should."""

_STYLES = {"ok": "green", "warning": "yellow", "missing": "bold red", "not needed": "dim"}


def doctor_command(
    device: Annotated[
        str, typer.Option(help="The device that shall run, as in generate: software, native, rtl, xrt:0, pynq:0.")
    ] = "software",
    cold_dir: Annotated[
        Path | None, typer.Option(help="Folder of the cold pool, as in generate.", show_default="in the user's cache")
    ] = None,
    xclbin: Annotated[
        Path | None, typer.Option(help="The card's image, as in generate.", show_default="the one in bitstreams")
    ] = None,
    device_keys: Annotated[DeviceKeys, typer.Option(help="Where a card's keys shall lie, as in generate.")] = (
        DeviceKeys.auto
    ),
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """Say what this machine has for a device, what each missing thing means, and how to get it.

    Exit code 0 when the device can run, 1 when something it needs is missing. Needs no root and changes nothing.
    """
    from hillinfer.doctor import Wanted, as_dict, examine, ready

    wanted = Wanted(device, cold_dir, xclbin, device_keys.value)
    console = stderr()
    if as_json or not console.is_terminal:
        findings = examine(wanted)
    else:
        with console.status("looking") as status:
            findings = examine(wanted, on_subject=lambda subject: status.update(f"looking at {subject}"))
    if as_json:
        write_json(as_dict(wanted, findings))
    else:
        stdout().print(_table(findings))
        stdout().print(_verdict(wanted.device, findings), soft_wrap=True)
    if not ready(findings):
        raise typer.Exit(NOT_READY)


def _table(findings: list[Finding]) -> Table:
    """State and finding, a section per subject; of what is not right also what it means and how to get it."""
    table = Table(show_header=False, expand=False)
    for column in ("subject", "state", "finding"):
        table.add_column(column, no_wrap=column == "state", overflow="fold")
    last = None
    for finding in findings:
        if last is not None and finding.subject != last:
            table.add_section()
        state = finding.state.value
        said = Text.assemble((f"{finding.name}: ", "bold"), finding.found)
        if state in ("warning", "missing"):
            said.append(f"\n{finding.means}").append(f"\n→ {finding.fix}", style="cyan")
        heading = finding.subject if finding.subject != last else ""
        table.add_row(heading, Text(state, style=_STYLES[state]), said)
        last = finding.subject
    return table


def _verdict(device: str, findings: list[Finding]) -> Text:
    count = {state: sum(finding.state.value == state for finding in findings) for state in _STYLES}
    if count["missing"]:
        return Text(f"{device} cannot run: {count['missing']} missing, {count['warning']} warnings", style="bold red")
    return Text(f"{device} can run ({count['warning']} warnings)", style="bold green")
