"""The gates of a build: what the tools reported against what the kernel promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from . import csynth, provenance, timing, utilisation
from .build import reached_mhz
from .commands import KERNEL
from .errors import VitisError


@dataclass(frozen=True)
class Gate:
    """One thing that was checked: what it was read from, the figures in words, and the faults found."""

    name: str
    source: str
    says: str
    faults: tuple[str, ...]
    values: dict[str, Any]


def synthesis(root: Path, folder: Path) -> Gate:
    """Intervals and estimated period of the last C synthesis under the folder."""
    files = sorted(folder.rglob("csynth.xml"), key=lambda file: (len(file.parts), file))
    if not files:
        raise VitisError(f"there is no csynth.xml under {folder}: run make xo first")
    found = csynth.read(files[0])
    wanted = csynth.pipelined_loops(provenance.kernel_sources(root))
    if not wanted:
        raise VitisError(f"no labelled, pipelined loop in the kernel's sources under {root / 'hls'}")
    intervals = {loop.name: loop.ii for loop in found.loops if loop.name in wanted}
    worst = max((interval or 0 for interval in intervals.values()), default=0)
    return Gate(
        "synthesis",
        str(files[0]),
        f"{len(intervals)} of {len(wanted)} pipelined loops, worst II {worst}, "
        f"estimated {found.estimated_ns:.2f} ns of {found.target_ns:.2f}",
        tuple(csynth.faults(found, wanted)),
        {
            "ii": intervals,
            "estimated_ns": found.estimated_ns,
            "target_ns": found.target_ns,
            "estimate": found.resources,
        },
    )


def routed_timing(folder: Path, wanted_mhz: int, name: str | None = None) -> Gate:
    """The slack of the kernel's clock after routing."""
    file = timing.find(folder)
    clock = timing.kernel_clock(timing.read(file), name)
    faults = timing.faults(clock, wanted_mhz)
    reached = reached_mhz(folder / f"{KERNEL}.xclbin")
    if reached is not None and reached < wanted_mhz - 1:
        faults.append(f"v++ lowered the kernel's clock to {reached} MHz")
    return Gate(
        "timing",
        str(file),
        f"{clock.name} at {clock.mhz:.0f} MHz: setup slack {clock.setup:.3f} ns, hold slack {clock.hold:.3f} ns",
        tuple(faults),
        {**asdict(clock), "reached_mhz": reached},
    )


def resources(folder: Path) -> Gate:
    """The kernel's share of what the platform leaves to kernels."""
    file = utilisation.find(folder)
    use = utilisation.read(file, KERNEL)
    return Gate(
        "utilisation",
        str(file),
        ", ".join(f"{name} {entry.count:g} ({entry.share:.1f} %)" for name, entry in use.items()),
        tuple(utilisation.faults(use)),
        {name: asdict(entry) for name, entry in use.items()},
    )


def of_build(
    root: Path, hls: Path, link: Path | None, target: str, wanted_mhz: int, clock: str | None = None
) -> list[Gate]:
    """All gates that a build of this target has: emulation is not routed, so only synthesis counts for it.

    A report that is missing or unreadable is a fault of its gate: it must neither pass nor stop the others.
    """
    gates = [_gate("synthesis", lambda: synthesis(root, hls))]
    if target == "hw" and link is not None:
        gates.append(_gate("timing", lambda: routed_timing(link, wanted_mhz, clock)))
        gates.append(_gate("utilisation", lambda: resources(link)))
    return gates


def _gate(name: str, read: Callable[[], Gate]) -> Gate:
    try:
        return read()
    except VitisError as error:
        return Gate(name, "", "no figures", (str(error),), {})


def lines(gates: list[Gate]) -> list[str]:
    """The gates for people: a line each, and a line for each fault."""
    text = []
    for gate in gates:
        text.append(f"{'FAIL' if gate.faults else 'ok':4}  {gate.name:12} {gate.says}")
        text += [f"      {fault}" for fault in gate.faults]
    return text
