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
    try:
        if path.is_dir():
            raise SettingError(f"{path} is a folder: name a file in it")
        if path.exists() and not path.is_file():  # /dev/null, a pipe
            return path
        there = next(each for each in path.absolute().parents if each.exists())
        if not there.is_dir() or not os.access(there, os.W_OK):
            raise SettingError(f"{path} cannot be written ({there} takes no files): name another")
    except OSError as error:  # a folder on the way may not be looked into
        raise SettingError(f"{path} cannot be written ({error.strerror}): name another") from None
    return path


def folder(path: Path | None) -> Path | None:
    """The path of a folder for cold files, ``~`` written out; SettingError if it is none."""
    if path is None:
        return None
    path = path.expanduser()
    try:
        there = path.is_dir()
    except OSError as error:
        raise SettingError(f"the cold folder {path} cannot be used ({error.strerror}): name another") from None
    if not there:
        raise SettingError(f"the cold folder {path} is no folder: create it, or name another with --cold-dir")
    return path


Output = Annotated[Path, typer.Option(help="Where the JSON goes.", callback=writable)]
