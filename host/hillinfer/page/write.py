"""The page itself: chapters filled from a folder of reports, through templates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from hillinfer.figures import palette
from hillinfer.page.chapter import Chapter, Section, fill
from hillinfer.page.contents import CHAPTERS
from hillinfer.page.machine import machine, versions
from hillinfer.page.sources import find

_TEMPLATES = Path(__file__).parent / "templates"


def sections(folder: Path, say: Callable[[str], None], chapters: Sequence[Chapter] = CHAPTERS) -> list[Section]:
    """Every chapter, with what the folder has for it."""
    filled = []
    for chapter in chapters:
        say(chapter.title)
        filled.append(fill(chapter, find(chapter.source, folder)))
    return filled


def html(filled: Sequence[Section], folder: Path) -> str:
    """One page."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = environment.get_template("style.css.j2").render(
        colours=[(name, colour, palette.DARK[colour]) for colour, name in palette.NAMES.items()], paper=palette.PAPER
    )
    parts = [(part, list(group)) for part, group in groupby(filled, key=lambda section: section.chapter.part)]
    return environment.get_template("page.html.j2").render(
        parts=parts, style=style, machine=machine(), versions=versions(), sources=_sources(filled), folder=str(folder)
    )


def _sources(filled: Sequence[Section]) -> list[Section]:
    """One section per file."""
    return list({section.chapter.source.file: section for section in filled}.values())
