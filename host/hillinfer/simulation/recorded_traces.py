"""Traces that come with the package: the default model on the text in CPython, counts without positions."""

from __future__ import annotations

from importlib import resources

from hillinfer.errors import SettingError, nearest
from hillinfer.simulation.trace import Trace
from hillinfer.simulation.trace_file import load

DEFAULT = "hillinfer-10-hot-20"
"""α = 10 %, a fifth of the KV in DRAM, 1920 tokens, 128 steps."""


def names() -> list[str]:
    """What there is."""
    files = (resources.files(__package__) / "recorded").iterdir()
    return sorted(file.name.removesuffix(".npz") for file in files if file.name.endswith(".npz"))


def named(name: str) -> Trace:
    """A trace by name; SettingError for one that is not known, with the nearest."""
    if name not in names():
        raise SettingError(f"there is no recorded trace {name!r}{nearest(name, names())}")
    with resources.as_file(resources.files(__package__) / "recorded" / f"{name}.npz") as path:
        return load(path)


def default() -> Trace:
    """The one that ``simulate run`` goes by unless told otherwise."""
    return named(DEFAULT)
