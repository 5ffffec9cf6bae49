"""The tasks by name. Adding one: its file, and a line here; only the task that is used is imported."""

from __future__ import annotations

import importlib

from hillinfer.errors import SettingError, nearest
from hillinfer.evaluation.task import Task

_TASKS: dict[str, str] = {  # module within this package, class
    "text": "local.continuation:Text",
    "passkey": "local.single:Passkey",
    "needle": "local.single:Needle",
    "multi-key": "local.several:MultiKey",
    "multi-query": "local.several:MultiQuery",
    "multi-value": "local.several:MultiValue",
    "tracking": "local.several:Tracking",
}


def names() -> list[str]:
    """Names of all tasks, in the order of the table."""
    return list(_TASKS)


def local_names() -> list[str]:
    """Names of the tasks that are made here and need no data set."""
    return [name for name, where in _TASKS.items() if where.startswith("local.")]


def find(name: str) -> type[Task]:
    """The class of the task ``name``; SettingError names the nearest one for a name that is not known."""
    if name not in _TASKS:
        raise SettingError(f"unknown task {name!r}{nearest(name, names())}")
    module, _, attribute = _TASKS[name].partition(":")
    task: type[Task] = getattr(importlib.import_module(f"hillinfer.evaluation.{module}"), attribute)
    return task
