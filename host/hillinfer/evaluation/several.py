"""A task of several subsets, each a task of its own."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from hillinfer.evaluation.task import Task


class Several(Task):
    """subsets: names of all of them; asked: of those this task asks, all of them unless it was made by ``only``."""

    subsets: ClassVar[tuple[str, ...]]
    asked: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        if "asked" not in cls.__dict__ and hasattr(cls, "subsets"):
            cls.asked = cls.subsets

    @classmethod
    @abstractmethod
    def only(cls, subset: str) -> type[Task]:
        """The task of one subset, named "name/subset"; SettingError names the nearest for one that is not known."""
