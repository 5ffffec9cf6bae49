"""A statement of a paper, and how we know of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Read(Enum):
    """How we know what a paper states."""

    abstract = "the paper's own abstract"
    summary = "a public summary of the paper"
    derived = "arithmetic on what is stated"
    specification = "this project's specification, which says what the paper states; the page itself was not read"
    ours = "our own words for what the figure is about; the paper's are not known to us"

    @property
    def mark(self) -> str:
        """What a table says beside a statement that is not the paper's wording, nor anybody's who read it."""
        return {Read.specification: "by our specification", Read.ours: "our words"}.get(self, "")


@dataclass(frozen=True)
class Paper:
    title: str
    source: str


@dataclass(frozen=True)
class Statement:
    """One claim.

    figure     what it belongs to: a name of ``registry.FIGURES``
    low, high  the stated range in ``unit``: equal for a value, one alone for a bound; neither where the paper shows a
               figure of which no number is known to us
    where      in the paper; source: of our knowledge of it
    """

    name: str
    figure: str
    says: str
    where: str
    read: Read
    source: str
    low: float | None = None
    high: float | None = None
    unit: str = ""

    @property
    def has_number(self) -> bool:
        return self.low is not None or self.high is not None

    def difference(self, ours: float) -> float | None:
        """How far ``ours`` is from what is stated, as a share of it: 0 within, negative below; None without a number.

        A bound that is kept is no difference: what should be under 25 s may be 3 s.
        """
        if self.low is not None and ours < self.low:
            return ours / self.low - 1
        if self.high is not None and ours > self.high:
            return ours / self.high - 1
        return 0.0 if self.has_number else None
