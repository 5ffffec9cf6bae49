"""Numbers for people; a dash for what there is not."""

from __future__ import annotations

NONE = "–"


def form(value: float | None, how: str = ".2f") -> str:
    """A number by a format of Python's."""
    return NONE if value is None else format(value, how)


def percent(share: float | None, digits: int = 0) -> str:
    """``0.123`` → ``12 %``."""
    return NONE if share is None else f"{share * 100:.{digits}f} %"


def count(value: float) -> str:
    """``32768`` → ``32,768``."""
    return f"{value:,.0f}"


def short(value: float) -> str:
    """Three figures that count, whatever the size: ``0.0136``, ``9.8``, ``355``."""
    if not value:
        return "0"
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def tokens(number: int) -> str:
    """``8192`` → ``8k``, for the ticks of an axis."""
    return f"{number // 1024}k" if number % 1024 == 0 else str(number)
