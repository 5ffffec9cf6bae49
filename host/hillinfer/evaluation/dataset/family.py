"""A data set of several subsets: all of them are one task, each is one as well."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from hillinfer.errors import SettingError, nearest
from hillinfer.evaluation.dataset.records import Record
from hillinfer.evaluation.several import Several
from hillinfer.evaluation.task import Asking, Item, Task


class Family(Several):
    """What a data set says: its subsets, how their records are read, and what each record asks.

    subsets     all of them, in the data set's order
    retrieving  those whose answer stands in the prompt word for word
    """

    retrieving: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    def only(cls, subset: str) -> type[Task]:
        """The task of one subset, named "family/subset"; SettingError names the nearest for one that is not known."""
        if subset not in cls.subsets:
            raise SettingError(f"{cls.name} has no subset {subset!r}{nearest(subset, cls.subsets)}")
        own = {"name": f"{cls.name}/{subset}", "asked": (subset,), "retrieval": subset in cls.retrieving}
        return type(f"{cls.__name__}_{subset}", (cls,), own)

    @abstractmethod
    def records(self, subset: str, data: Path | None, limit: int | None) -> list[Record]:
        """The subset's records, checked, ``limit`` at most; DocumentError where they are missing or broken."""

    @abstractmethod
    def item(self, subset: str, record: Record, asking: Asking) -> Item:
        """What one record asks."""

    def check(self, data: Path | None, limit: int | None) -> None:
        """Read all files, and keep none: some are large."""
        for subset in self.asked:
            self.records(subset, data, limit)

    def items(self, asking: Asking) -> Iterator[Item]:
        """Subset after subset. All files are read and checked before the first item, and not kept.

        SettingError, then as well, for a package that a metric needs and that is missing.
        """
        for subset in self.asked:
            self.score(self.item(subset, self.records(subset, asking.data, asking.limit)[0], asking), "")
        for subset in self.asked:
            for record in self.records(subset, asking.data, asking.limit):
                yield self.item(subset, record, asking)
