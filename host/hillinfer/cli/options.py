"""Options that every command has. ``main`` looks for them itself: it must know them when parsing fails, too."""

from __future__ import annotations

from typing import Annotated

import typer

_PANEL = "Output"

AsJson = Annotated[
    bool,
    typer.Option("--json", help="The result as JSON, alone on stdout; an error too.", rich_help_panel=_PANEL),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error as well.", rich_help_panel=_PANEL)]
