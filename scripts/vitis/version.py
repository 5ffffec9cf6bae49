"""Versions of Vitis, and what changed in which.

Sources: UG1393 and UG1399 of 2021.2 to 2024.2, UG1702. Up to 2022.2 a Tcl script of HLS runs with
``vitis_hls -f``; from 2023.1 with ``vitis-run --mode hls --tcl``; 2024.2 dropped ``vitis_hls``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_IN_BANNER = re.compile(r"\bv?(20\d\d)\.(\d)(?:\.\d+)?\b")


class Version(NamedTuple):
    """A release of Vitis, such as 2022.2; ordered."""

    year: int
    release: int

    def __str__(self) -> str:
        return f"{self.year}.{self.release}"

    @staticmethod
    def of_banner(text: str) -> Version | None:
        """The first version that a tool's ``--version`` prints; None when there is none."""
        found = _IN_BANNER.search(text)
        return Version(int(found[1]), int(found[2])) if found else None


OLDEST = Version(2021, 2)
NEWEST = Version(2024, 2)
VITIS_RUN = Version(2023, 1)  # the first with vitis-run
RECOMMENDED = Version(2021, 2)  # what UG1382 names for the SmartSSD's platform
