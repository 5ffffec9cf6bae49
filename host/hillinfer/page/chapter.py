"""A chapter of the page: what it says, from which report, and how that becomes pictures and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hillinfer.figures.picture import Picture, Table
from hillinfer.page.sources import Found, Source


@dataclass(frozen=True)
class Chapter:
    """key: its anchor on the page; lead: what one looks at, in plain words; part: the heading it stands under."""

    part: str
    key: str
    title: str
    lead: str
    source: Source[Any]
    pictures: Callable[[Any], Sequence[Picture]] = lambda _: ()
    tables: Callable[[Any], Sequence[Table]] = lambda _: ()


@dataclass(frozen=True)
class Section:
    """A chapter with what was found for it."""

    chapter: Chapter
    found: Found[Any]
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()

    @property
    def stamp(self) -> Any:
        """When, where and by what it was measured, if the report says so."""
        return getattr(self.found.content, "measured", None)


def fill(chapter: Chapter, found: Found[Any]) -> Section:
    """Draw what there is."""
    if found.content is None:
        return Section(chapter, found)
    return Section(chapter, found, chapter.pictures(found.content), chapter.tables(found.content))
