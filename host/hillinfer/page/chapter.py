"""A chapter of the page: what it says, from which report, and how that becomes pictures and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hillinfer.figures.picture import Picture, Table
from hillinfer.page.sources import Found, Source

T = TypeVar("T")


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
    """A chapter with what was found for it. undrawn: what could not be drawn of it, and why, a sentence each."""

    chapter: Chapter
    found: Found[Any]
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()
    undrawn: Sequence[str] = ()

    @property
    def stamp(self) -> Any:
        """When, where and by what it was measured, if the report says so."""
        return getattr(self.found.content, "measured", None)


def fill(chapter: Chapter, found: Found[Any]) -> Section:
    """Draw what there is. What fails is told in ``undrawn``, whatever it raises: the others are shown."""
    if found.content is None:
        return Section(chapter, found)
    undrawn: list[str] = []

    def tried(what: str, make: Callable[[], T]) -> list[T]:
        try:
            return [make()]
        except Exception as error:  # a real measurement can be such as no figure foresaw
            undrawn.append(f"{what} cannot be drawn from {found.source.file} ({type(error).__name__}: {error}).")
            return []

    made = [each for some in tried("The figures", lambda: chapter.pictures(found.content)) for each in some]
    pictures = [each for each in made if tried(f"The figure “{each.title}”", each.svg)]
    tables = [each for some in tried("The tables", lambda: chapter.tables(found.content)) for each in some]
    return Section(chapter, found, pictures, tables, undrawn)
