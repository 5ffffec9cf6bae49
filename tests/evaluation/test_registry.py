"""Every task of the table is there, under its own name."""

from __future__ import annotations

import pytest

from hillinfer.errors import SettingError
from hillinfer.evaluation import registry
from hillinfer.evaluation.task import Task


def test_every_name_finds_a_task_of_that_name() -> None:
    for name in registry.names():
        task = registry.find(name)
        assert issubclass(task, Task)
        assert task.name == name
        assert task.source


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SettingError, match="unknown task 'no such task'"):
        registry.find("no such task")
