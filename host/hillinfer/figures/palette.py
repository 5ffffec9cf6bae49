"""Colours by their use. Each has a form for light and one for dark paper; a mark besides, so that none says it alone.

A picture is drawn in the light forms. In SVG they become CSS variables, so a page's theme changes them. All have a
contrast of 4.5 and more to their paper, and neighbours differ in lightness too.
"""

from __future__ import annotations

from typing import Any

INK, SOFT, LINE = "#1c2127", "#59626e", "#d3d8de"
"""Text and axes; what is said beside; grids."""

OURS, BLUE, GREEN, PURPLE, RED, TEAL, OLIVE, GREY = (
    "#b6460f",
    "#1f63b0",
    "#1c7248",
    "#7d3c9b",
    "#b3264a",
    "#0b6b7d",
    "#6a5c00",
    "#5b646f",
)
SERIES = (OURS, BLUE, GREEN, PURPLE, RED, TEAL, OLIVE, GREY)
"""Of things compared, HillInfer's first."""

DARK = {
    INK: "#e8ebef",
    SOFT: "#a3adb9",
    LINE: "#363d47",
    OURS: "#ff9f5f",
    BLUE: "#7fb8ff",
    GREEN: "#6bd39d",
    PURPLE: "#d8a4f2",
    RED: "#ff8fa6",
    TEAL: "#5fd0e0",
    OLIVE: "#dcca55",
    GREY: "#adb6c1",
}
NAMES = dict(
    zip(DARK, ("ink", "soft", "line", "ours", "blue", "green", "purple", "red", "teal", "olive", "grey"), strict=True)
)
"""Of the CSS variables."""

PAPER = {"light": "#ffffff", "dark": "#14181d"}
MARKS = "osD^vPX<>*hdp"
DASHES = ("-", "--", "-.", ":")


def variables(theme: str) -> str:
    """CSS declarations of all colours in one theme."""
    return "".join(f"--{name}:{DARK[colour] if theme == 'dark' else colour};" for colour, name in NAMES.items())


def look(number: int) -> dict[str, Any]:
    """Colour, mark and dashes of the n-th thing compared; HillInfer is the first, and no other has its colour."""
    others = SERIES[1:]
    return {
        "color": others[(number - 1) % len(others)] if number else OURS,
        "marker": MARKS[number % len(MARKS)],
        "linestyle": DASHES[max(0, number - 1) // len(others) % len(DASHES)],
    }


def contrast(first: str, second: str) -> float:
    """Of two colours (``"#rrggbb"``), 1 to 21, as WCAG 2 has it; 4.5 and more is read by most."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def on(colour: str) -> str:
    """Black or white: what is read on this colour. One of the two always has a contrast of 4.5."""
    return max(("#000000", "#ffffff"), key=lambda shade: contrast(shade, colour))


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
