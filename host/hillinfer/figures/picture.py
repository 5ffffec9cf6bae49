"""A picture: what is drawn, what it says in words, and its figures as a table."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from hillinfer.figures import palette
from hillinfer.figures.canvas import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STANDALONE = "svg *{stroke-linejoin:round;stroke-linecap:butt}"
_FONT = re.compile(r"font: (?:(?P<weight>\d+|bold) )?(?P<size>[\d.]+)px [^;\"]*")
_FAMILY = re.compile(r"font-family: [^;\"]*;? ?")
_REFERENCE = re.compile(r'(?:url\(#|href="#)([^)"]+)')


@dataclass(frozen=True)
class Table:
    """Figures as text: ``words`` columns of words first, then numbers. title: what is in it, where it stands alone."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    title: str = ""


@dataclass(frozen=True)
class Picture:
    """One picture.

    name     of its file, and the root of its ids
    title    what it shows, in a line
    says     what one sees in it, for those who don't
    figure   drawn by matplotlib
    table    its figures; rows of a large one may be summed up, and its title says so
    """

    name: str
    title: str
    says: str
    figure: Figure = field(repr=False)
    table: Table

    def svg(self) -> str:
        """An SVG element for a page: colours are CSS variables, ids are its own, the same bytes every time."""
        return self._element

    @cached_property
    def _element(self) -> str:
        drawn = self._drawn()
        drawn = drawn[drawn.index("<svg") :].strip()
        drawn = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", drawn, flags=re.DOTALL)
        used = set(_REFERENCE.findall(drawn))
        drawn = re.sub(r' id="([^"]+)"', lambda found: found[0] if found[1] in used else "", drawn)
        drawn = re.sub(r"(url\(#|href=\"#| id=\")", rf"\g<1>{self.name}-", drawn)
        drawn = _FONT.sub(_font, _FAMILY.sub("", drawn))
        for colour, name in palette.NAMES.items():
            drawn = drawn.replace(colour, f"var(--{name},{colour})")
        box = re.search(r'viewBox="[^"]+"', drawn)
        assert box is not None
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]} role="img" '
            f'aria-labelledby="{self.name}-title {self.name}-says"><title id="{self.name}-title">{escape(self.title)}'
            f'</title><desc id="{self.name}-says">{escape(self.says)}</desc>'
        )
        return head + re.sub(r"\s*\n\s*", "\n", drawn[drawn.index(">") + 1 :])

    def file(self) -> str:
        """An SVG file that follows the theme of whoever shows it."""
        light, dark = (palette.variables(theme) for theme in ("light", "dark"))
        css = f"svg{{{light}font-family:sans-serif}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}{_STANDALONE}"
        drawn = self.svg()
        at = drawn.index(">") + 1
        return f"{drawn[:at]}<style>{css}</style>{drawn[at:]}\n"

    def png(self) -> bytes:
        """A bitmap on white paper, which is read on any."""
        written = io.BytesIO()
        with style(self.name):
            self.figure.savefig(
                written, format="png", dpi=160, facecolor=palette.PAPER["light"], metadata={"Software": None}
            )
        return written.getvalue()

    def _drawn(self) -> str:
        written = io.StringIO()
        with style(self.name):
            self.figure.savefig(written, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        return written.getvalue()


def _font(found: re.Match[str]) -> str:
    weight = f"font-weight: {found['weight']}; " if found["weight"] else ""
    return f"{weight}font-size: {found['size']}px"
