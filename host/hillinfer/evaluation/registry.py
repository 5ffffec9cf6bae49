"""The tasks by name. Adding one: its file, and a line here; only the task that is used is imported.

A data set of several subsets is one line: "longbench" asks all of it, "longbench/hotpotqa" one subset.
"""

from __future__ import annotations

import importlib

from hillinfer.errors import SettingError, nearest
from hillinfer.evaluation.several import Several
from hillinfer.evaluation.task import Task

_TASKS: dict[str, str] = {  # module within this package, class
    "text": "local.continuation:Text",
    "passkey": "local.single:Passkey",
    "needle": "local.single:Needle",
    "multi-key": "local.several:MultiKey",
    "multi-query": "local.several:MultiQuery",
    "multi-value": "local.several:MultiValue",
    "tracking": "local.several:Tracking",
    "common-words": "local.counting:CommonWords",
    "frequent-words": "local.counting:FrequentWords",
    "longbench": "longbench.task:LongBench",
    "longbench-e": "longbench.task:LongBenchE",
    "longbench-v2": "longbench_v2.task:LongBenchV2",
    "infinitebench": "infinitebench.task:InfiniteBench",
    "harness": "harness.task:Harness",
}


def names() -> list[str]:
    """Names of all tasks, in the order of the table."""
    return list(_TASKS)


def local_names() -> list[str]:
    """Names of the tasks that are made here and need no data set."""
    return [name for name, where in _TASKS.items() if where.startswith("local.")]


def find(name: str) -> type[Task]:
    """The class of the task ``name``; SettingError names the nearest one for a name that is not known."""
    family, slash, subset = name.partition("/")
    if family not in _TASKS:
        raise SettingError(f"unknown task {name!r}{nearest(name, names())}")
    module, _, attribute = _TASKS[family].partition(":")
    task: type[Task] = getattr(importlib.import_module(f"hillinfer.evaluation.{module}"), attribute)
    if not slash:
        return task
    if not issubclass(task, Several):
        raise SettingError(f"unknown task {name!r}: {family} has no subsets")
    return task.only(subset)


def parts(name: str) -> list[str]:
    """The subsets of a data set as tasks of their own, each to have rows of its own; of any other task itself."""
    task = find(name)
    return [f"{name}/{subset}" for subset in task.subsets] if issubclass(task, Several) and "/" not in name else [name]
