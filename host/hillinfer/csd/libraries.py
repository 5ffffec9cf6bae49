"""Where the shared libraries that are made from the kernel's source are found."""

from __future__ import annotations

import os
from pathlib import Path

import hillinfer
from hillinfer.errors import DeviceError

_SOURCES = Path(__file__).resolve().parents[3]


def find(file: str, what: str, variable: str, build_folder: str, command: str) -> Path:
    """The library ``file``: what the environment's ``variable`` names, else in the package or in build/.

    DeviceError names ``what`` is missing, where it was looked for, and the ``command`` that makes it.
    """
    named = os.environ.get(variable)
    installed = [Path(folder) for folder in hillinfer.__path__]
    places = [Path(named)] if named else [*installed, _SOURCES / "build" / build_folder]
    for place in places:
        path = place / file if place.is_dir() else place
        if path.is_file():
            return path
    fix = f"correct {variable}" if named else f"run `{command}`, or name its folder in {variable}"
    raise DeviceError(f"{what} is not at {' or '.join(map(str, places))}: {fix}")
