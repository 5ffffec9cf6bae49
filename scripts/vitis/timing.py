"""The routed timing summary of Vivado: the slack of each clock, of which the kernel's is gated.

Source: UG906, report_timing_summary: a Design Timing Summary, a Clock Summary (period of each clock) and an Intra
Clock Table (WNS, TNS, failing and all endpoints of each clock; then the same for hold and for pulse width).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .errors import VitisError

_NUMBER = r"-?\d+(?:\.\d+)?"
_PERIOD = re.compile(rf"^\s*(\S+)\s+\{{[^}}]*\}}\s+({_NUMBER})\s+({_NUMBER})\s*$")
# name; setup: WNS TNS failing, all endpoints; hold: WHS THS. A clock without paths has blanks and does not match.
_SLACK = re.compile(rf"^\s*(\S+)\s+({_NUMBER})\s+{_NUMBER}\s+\d+\s+(\d+)\s+({_NUMBER})\s+{_NUMBER}\s")
_SECTION = re.compile(r"^\|\s*([A-Z][\w ]+?)\s*$")
_SUFFIXES = ("timing_summary_postroute_physopted.rpt", "timing_summary_routed.rpt", "timing_summary_0.rpt")


@dataclass(frozen=True)
class Clock:
    """One clock after routing: period and slacks in nanoseconds, endpoints as a count of its registers."""

    name: str
    period: float
    setup: float
    hold: float
    endpoints: int

    @property
    def mhz(self) -> float:
        """The frequency it was constrained to."""
        return 1000 / self.period


def find(folder: Path) -> Path:
    """The last timing summary under the link folder: that after post-route optimisation if there was one."""
    for suffix in _SUFFIXES:
        files = sorted(folder.rglob(f"*{suffix}"), key=lambda file: (len(file.parts), file))
        if files:
            return files[0]
    raise VitisError(f"there is no routed timing summary under {folder}: did make xclbin TARGET=hw run to its end?")


def read(file: Path) -> list[Clock]:
    """The clocks that have paths of their own; VitisError when the tables are not there."""
    periods: dict[str, float] = {}
    clocks: list[Clock] = []
    section = ""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        raise VitisError(f"{file} cannot be read: {error}") from error
    for line in lines:
        if title := _SECTION.match(line):
            section = title[1]
        elif section == "Clock Summary" and (row := _PERIOD.match(line)):
            periods[row[1]] = float(row[2])
        elif section == "Intra Clock Table" and (row := _SLACK.match(line)) and row[1] in periods:
            clocks.append(Clock(row[1], periods[row[1]], float(row[2]), float(row[4]), int(row[3])))
    if not clocks:
        raise VitisError(f"{file} has no Intra Clock Table with slacks: is it Vivado's report_timing_summary?")
    return clocks


def kernel_clock(clocks: list[Clock], name: str | None = None) -> Clock:
    """The clock of the kernel: the one named, else of those with ``kernel`` in their name the one with most endpoints.

    Platforms have two such clocks, and the second drives next to nothing. VitisError lists the clocks.
    """
    if name is not None:
        candidates = [clock for clock in clocks if clock.name == name]
    else:
        candidates = [clock for clock in clocks if "kernel" in clock.name.lower()]
    if not candidates:
        raise VitisError(
            f"which clock drives the kernel? None is called {name or '…kernel…'}; KERNEL_CLOCK=<name> says so: "
            + ", ".join(clock.name for clock in clocks)
        )
    return max(candidates, key=lambda clock: clock.endpoints)


def faults(clock: Clock, wanted_mhz: int) -> list[str]:
    """What is wrong with the kernel's clock; empty when it meets setup and hold at the frequency asked for."""
    wrong = []
    if clock.setup < 0:
        fastest = 1000 / (clock.period - clock.setup)
        wrong.append(f"clock {clock.name} misses setup by {-clock.setup:.3f} ns: {fastest:.0f} MHz would be met")
    if clock.hold < 0:
        wrong.append(f"clock {clock.name} misses hold by {-clock.hold:.3f} ns")
    # The platform rounds what it is asked for by less than a megahertz.
    if clock.mhz < wanted_mhz - 1:
        wrong.append(f"clock {clock.name} was routed for {clock.mhz:.0f} MHz, not for {wanted_mhz}")
    return wrong
