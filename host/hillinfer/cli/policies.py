"""``hillinfer policies``: what ``--policy`` knows by name, and the settings of each."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from hillinfer.cli.console import stdout, write_json
from hillinfer.cli.options import AsJson, Debug
from hillinfer.cli.policy import PolicyFile, load_file

if TYPE_CHECKING:
    from hillinfer.policies import Policy

_CAPTION = "hillinfer policies NAME shows its settings; --budget and --set give them, docs/policies.md adds your own"


def policies_command(
    name: Annotated[str | None, typer.Argument(help="Show the settings of this one.", show_default=False)] = None,
    policy_file: PolicyFile = None,
    as_json: AsJson = False,
    _debug: Debug = False,
) -> None:
    """List the policies known by name: their source, what they keep where, and their settings."""
    from hillinfer import policies

    load_file(policy_file)
    if name is not None:
        policy = policies.find(name)
        if as_json:
            write_json(_as_dict(policy))
        else:
            _show(policy)
        return
    known = [policies.find(each) for each in policies.names()]
    if as_json:
        write_json([_as_dict(policy) for policy in known])
        return
    table = Table(caption=_CAPTION, caption_justify="left")
    table.add_column("policy", no_wrap=True)
    table.add_column("keeps")
    for policy in known:
        named = policy.name + ("\n[yellow]drops tokens[/]" if policy.drops else "")
        settings = ", ".join(setting["name"] for setting in _settings(policy)) or "no settings"
        table.add_row(named, f"{policy.keeps}\n[dim]{policy.source}\n{settings}[/]")
    stdout().print(table)


def _show(policy: type[Policy]) -> None:
    console = stdout()
    console.print(f"[bold]{policy.name}[/]  {policy.source}")
    console.print(f"keeps {policy.keeps}")
    if policy.drops:
        console.print("[yellow]drops tokens[/]: they cannot be attended again")
    settings = _settings(policy)
    if not settings:
        console.print("it has no settings")
        return
    table = Table()
    for heading in ("setting", "type", "default", "what it is"):
        table.add_column(heading, no_wrap=heading == "setting")
    for setting in settings:
        kind = setting["type"] + (" or none" if setting["optional"] else "")
        default = "none" if setting["default"] is None else str(setting["default"])
        table.add_row(setting["name"], kind, default, setting["help"])
    console.print(table)


def _settings(policy: type[Policy]) -> list[dict[str, Any]]:
    from hillinfer.policies.settings import settings_of

    return [asdict(setting) for setting in settings_of(policy)]


def _as_dict(policy: type[Policy]) -> dict[str, Any]:
    return {
        "name": policy.name,
        "source": policy.source,
        "keeps": policy.keeps,
        "drops": policy.drops,
        "settings": _settings(policy),
    }
