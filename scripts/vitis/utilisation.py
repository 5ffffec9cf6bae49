"""kernel_util_routed.rpt: what the kernel takes of the part of the card that the platform leaves to kernels.

Source: UG1393. A table with a row for the platform, the user budget, what is used of it, and each kernel with its
compute units; a cell is a number and its share of the budget, ``50932 [ 15.39%]``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .errors import VitisError

# The project's own limits for the kernel, in % of the budget; DSPs are the tightest (see docs/kernel.md).
LIMITS = {"LUT": 20.0, "BRAM": 20.0, "DSP": 22.0}
_CELL = re.compile(r"^(\d+(?:\.\d+)?)\s*\[\s*(\d+(?:\.\d+)?)%\]$")


@dataclass(frozen=True)
class Use:
    """How much of one resource, and its share of the budget in %."""

    count: float
    share: float


def find(folder: Path) -> Path:
    """The report under the link folder."""
    files = sorted(folder.rglob("*kernel_util_routed.rpt"), key=lambda file: (len(file.parts), file))
    if not files:
        raise VitisError(
            f"there is no kernel_util_routed.rpt under {folder}: did make xclbin TARGET=hw run to its end?"
        )
    return files[0]


def read(file: Path, kernel: str) -> dict[str, Use]:
    """The kernel's row: resource (LUT, REG, BRAM, DSP, …) -> use. VitisError when there is no such row."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise VitisError(f"{file} cannot be read: {error}") from error
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if line.startswith("|")]
    header: list[str] = next((row for row in rows if row[0] == "Name"), [])
    for row in rows:
        if row[0] == kernel and len(row) == len(header):
            cells = zip(header[1:], map(_CELL.match, row[1:]), strict=True)
            return {name: Use(float(cell[1]), float(cell[2])) for name, cell in cells if cell}
    raise VitisError(f"{file} has no row for the kernel {kernel}")


def faults(use: dict[str, Use], limits: dict[str, float] = LIMITS) -> list[str]:
    """What is over its limit; a resource that the report does not have is a fault too."""
    wrong = []
    for resource, limit in limits.items():
        if resource not in use:
            wrong.append(f"the report does not say how many {resource} the kernel takes")
        elif use[resource].share > limit:
            wrong.append(f"{resource}: {use[resource].share:.1f} % of the budget, the limit is {limit:.0f} %")
    return wrong
