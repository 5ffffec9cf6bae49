"""Functional coverage: which values, and which pairs of values, the launches of a run have exercised.

A *point* is a feature of a launch ("format", "size", …) or a pair of them ("format × size"); its *bins* are the values
that must occur. A run that leaves a bin empty has not tested what it set out to test.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path

FORMATS = ("fp16_int8", "fp16_int4", "int8", "int4")
REDUCES = ("max", "sum")
SIZES = ("0", "1", "part of a block", "1023", "1024", "1025", "some blocks")
STALLS = ("none", "p < 0.5", "p ≥ 0.5", "p ≥ 0.98", "one channel", "gusts")

_SINGLE: dict[str, tuple[str, ...]] = {
    "format": FORMATS,
    "reduce": REDUCES,
    "G": tuple(str(group) for group in range(1, 9)),
    "d": ("32", "64", "80", "96", "128", "256"),
    "size": SIZES,
    "stall": STALLS,
    "kind": ("bits", "exact", "corners", "real"),
    "packing": ("whole", "whole dual", "pair", "pair dual"),
    "banks": ("2", "4", "8", "16"),
    "beats per group": tuple(str(beats) for beats in range(1, 9)),
    "beats per row": ("1", "some", "256"),
    "groups": ("1", "some", "64", "65", "256"),
    "kept": ("all", "some", "none"),
    "page offset": ("0", "64", "first half", "second half", "4032"),
    "launch": ("after reset", "back to back", "queued", "after an error"),
    "status": ("0", "1", "2", "3", "4", "5", "6", "7"),
}
_CROSSED = (
    ("format", "reduce"),
    ("format", "G"),
    ("format", "d"),
    ("format", "size"),
    ("format", "stall"),
    ("format", "kept"),
    ("reduce", "size"),
    ("reduce", "stall"),
    ("reduce", "G"),
    ("size", "stall"),
)
# A block takes a hundred thousand cycles then, and shows nothing that part of one doesn't.
_LEFT_OUT = {(size, "p ≥ 0.98") for size in SIZES if size not in ("1", "part of a block")}

POINTS: dict[str, tuple[str, ...]] = _SINGLE | {
    f"{a} × {b}": tuple(f"{x} × {y}" for x, y in product(_SINGLE[a], _SINGLE[b]) if (x, y) not in _LEFT_OUT)
    for a, b in _CROSSED
}


def page_offset_class(offset: int) -> str:
    """The class of a buffer's offset in its 4 KiB page."""
    return str(offset) if offset in (0, 64, 4032) else "first half" if offset < 2048 else "second half"


class Coverage:
    """Counts launches by bin."""

    def __init__(self, hits: Iterable[tuple[tuple[str, str], int]] = ()) -> None:
        self._hits: Counter[tuple[str, str]] = Counter(dict(hits))

    def record(self, features: Mapping[str, str]) -> None:
        """Count one launch; features without a point, or values without a bin, are not counted."""
        for point, bins in POINTS.items():
            parts = point.split(" × ")
            if all(part in features for part in parts):
                value = " × ".join(features[part] for part in parts)
                if value in bins:
                    self._hits[point, value] += 1

    @classmethod
    def total(cls, paths: Iterable[Path]) -> Coverage:
        """What the runs that saved these files covered together; a file may be missing."""
        total = cls()
        for path in paths:
            if path.exists():
                total._hits += cls.load(path)._hits
        return total

    def hits(self, point: str, value: str) -> int:
        """Launches that fell into a bin."""
        return self._hits[point, value]

    def empty(self, without: str = "") -> list[tuple[str, str]]:
        """The bins that nothing fell into, but for those named ``without``."""
        bins = [(point, value) for point, values in POINTS.items() for value in values]
        return [(point, value) for point, value in bins if not self._hits[point, value] and value != without]

    def table(self) -> str:
        """A line for each point: bins hit of bins there are, launches in the emptiest, and the bins that are empty."""
        lines = [f"{'coverage':<18} {'bins':>9} {'least':>6}  empty bins"]
        for point, bins in POINTS.items():
            counts = [self._hits[point, value] for value in bins]
            missing = [value for value, count in zip(bins, counts, strict=True) if not count]
            hit = f"{len(bins) - len(missing)}/{len(bins)}"
            lines.append(f"{point:<18} {hit:>9} {min(counts):>6}  {', '.join(missing) or '-'}")
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """As JSON: {point: {bin: launches}}, empty bins included."""
        tree = {point: {value: self._hits[point, value] for value in bins} for point, bins in POINTS.items()}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(tree, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Coverage:
        """What ``save`` wrote."""
        tree = json.loads(path.read_text(encoding="utf-8"))
        return cls(((point, value), count) for point, bins in tree.items() for value, count in bins.items())
