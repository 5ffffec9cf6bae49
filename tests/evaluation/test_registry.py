"""Every task of the table is there, under its own name."""

from __future__ import annotations

import pytest

from hillinfer.errors import SettingError
from hillinfer.evaluation import registry
from hillinfer.evaluation.plans import Part, plan_of
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


def test_a_subset_is_a_task() -> None:
    assert registry.find("longbench/hotpotqa").name == "longbench/hotpotqa"
    assert registry.find("infinitebench/passkey").retrieval
    with pytest.raises(SettingError, match="infinitebench has no subset 'paskey': did you mean 'passkey'"):
        registry.find("infinitebench/paskey")
    with pytest.raises(SettingError, match="passkey has no subsets"):
        registry.find("passkey/short")


def test_a_data_set_is_all_its_subsets() -> None:
    assert len(registry.parts("longbench")) == 21
    assert registry.parts("infinitebench")[0] == "infinitebench/passkey"
    assert registry.parts("longbench/trec") == ["longbench/trec"]
    assert registry.parts("needle") == ["needle"]


def test_what_is_named_twice_is_asked_once() -> None:
    plan = plan_of(["longbench/trec", "longbench", "needle", "needle"], [1024, 2048, 1024], 3)
    assert plan[-1] == Part("needle", (1024, 2048), 3)
    assert len(plan) == 22
