"""Options that say which policy decides, the same for every command that runs one."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hillinfer.errors import SettingError

if TYPE_CHECKING:
    from hillinfer.policies import Policy

PANEL = "Which tokens are attended"
DEFAULT = "hillinfer"
FULL = "full"
"""The stock cache, which is no policy of an engine."""

PolicyName = Annotated[
    str,
    typer.Option(
        help="Who chooses the tokens (see hillinfer policies); full is the stock cache, to compare with.",
        rich_help_panel=PANEL,
    ),
]
BudgetText = Annotated[
    str | None,
    typer.Option(
        help="What the policy may keep or attend to: a ratio (20%), tokens per head (512) or bytes of KV (64MiB).",
        show_default="the policy's own",
        rich_help_panel=PANEL,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other setting of the policy (see hillinfer policies NAME); may be given again.",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]
PolicyFile = Annotated[
    Path | None,
    typer.Option(
        help="A Python file with a policy of your own, registered there (see docs/policies.md).",
        show_default=False,
        rich_help_panel=PANEL,
    ),
]


def choose(name: str, budget: str | None, texts: list[str] | None, given: dict[str, Any]) -> Policy | None:
    """The policy ``name`` with its settings; None for the stock cache, which has none.

    budget   text of ``--budget``; texts: of ``--set``, NAME=VALUE each
    given    settings that have options of their own; None: not given

    Raises SettingError, with the nearest name for one that is not known.
    """
    from hillinfer import policies
    from hillinfer.policies.settings import read

    policy = policies.find(name)
    settings = {key: value for key, value in given.items() if value is not None}
    pairs = [("budget", budget)] if budget is not None else []
    for text in texts or []:
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise SettingError(f"--set {text}: write NAME=VALUE, such as --set window=64")
        pairs.append((key, value))
    for key, value in pairs:
        if key in settings:
            raise SettingError(f"the setting {key} is given twice: leave one of them out")
        settings[key] = read(policy, key, value)
    if {"alpha", "budget"} <= settings.keys():
        raise SettingError("--alpha and --budget both say how much is attended: leave one of them out")
    chosen = policies.create(name, **settings)
    return None if name == FULL else chosen


def load_file(path: Path | None) -> None:
    """Run a user's file, which registers policies of its own; SettingError says what is wrong with it."""
    if path is None:
        return
    from hillinfer import policies

    if not path.is_file():
        raise SettingError(f"--policy-file {path}: there is no such file")
    spec = importlib.util.spec_from_file_location(f"policy_file_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise SettingError(f"--policy-file {path}: name a Python file (.py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    before = {name: policies.find(name) for name in policies.names()}
    try:
        spec.loader.exec_module(module)
    except SettingError as error:
        raise SettingError(f"--policy-file {path}: {error}") from None
    except Exception as error:  # whatever a user's file may raise
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        line = getattr(error, "lineno", None) or (lines[-1] if lines else None)
        where = f" (line {line})" if line else ""
        raise SettingError(f"--policy-file {path}: {type(error).__name__}: {error}{where}") from error
    if all(before.get(name) is policies.find(name) for name in policies.names()):
        raise SettingError(f"--policy-file {path} registers no policy: put @hillinfer.policies.register on its class")
