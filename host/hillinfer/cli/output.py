"""Where a command's files go: looked at before the command works half an hour for them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hillinfer.errors import SettingError


def writable(path: Path | None) -> Path | None:
    """The path of a file to come, of which nothing is made yet; SettingError if there can be none."""
    if path is None:
        return None
    there = next(each for each in path.absolute().parents if each.exists())
    if path.is_dir():
        raise SettingError(f"{path} is a folder: name a file in it")
    if not there.is_dir() or not os.access(there, os.W_OK):
        raise SettingError(f"{path} cannot be written ({there} takes no files): name another")
    return path


def folder(path: Path | None) -> Path | None:
    """The path of a folder for cold files; SettingError if it is none."""
    if path is not None and not path.expanduser().is_dir():
        raise SettingError(f"the cold folder {path} is no folder: create it, or name another with --cold-dir")
    return path


Output = Annotated[Path, typer.Option(help="Where the JSON goes.", callback=writable)]
