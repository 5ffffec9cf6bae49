"""XRT's libraries and drivers, and its Python module: which versions, from where, and whether they go together."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from hillinfer.doctor.emulation import emulating
from hillinfer.doctor.finding import Finding, State, bad, good
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted

SUBJECT = "XRT"
INSTALLED = "opt/xilinx/xrt"
_LIBRARY = "libxrt_coreutil.so"
_TESTED = (2, 13)
_FINDS_ITSELF = (2, 16)  # XRT before it says "XILINX_XRT not set"
_SUPPORTED = ((2, 13), (2, 16))
_SECONDS = 30


def examine(machine: Machine, wanted: Wanted) -> Iterator[Finding]:
    """Libraries, where programs find them, the kernel's drivers, pyxrt."""
    needed = wanted.uses("xrt", "pynq")
    release = _release(machine)
    library = _library(machine)
    yield _libraries(needed, release, library, machine)
    yield _environment(needed, release, machine)
    yield from _drivers(needed and not emulating(machine), release, machine)
    yield _pyxrt(wanted.uses("xrt"), machine)


def version(text: str) -> tuple[int, ...]:
    """``2.13.466``, ``202210.2.13.466+dfsg-8`` and ``2.13.0,<hash>`` all begin with (2, 13)."""
    found = re.search(r"(?:^|\b20\d{4}\.)(2)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in found.groups() if part) if found else ()


def _release(machine: Machine) -> tuple[str, str]:
    """Version of the installed XRT, and where it was read: AMD's package, Debian's, or neither."""
    try:
        told = json.loads(machine.text(machine.path(f"{INSTALLED}/version.json")) or "")
        return str(told["BUILD_VERSION"]), f"/{INSTALLED}"
    except (ValueError, KeyError, TypeError):
        pass
    package = ""
    for line in machine.lines(machine.path("var/lib/dpkg/status")):
        key, _, value = line.partition(": ")
        if key == "Package":
            package = value
        elif key == "Version" and package in ("libxrt1", "libxrt2", "xrt"):
            return value, f"Debian package {package}"
    return "", ""


def _library(machine: Machine) -> Path | None:
    folders = [machine.path(f"{INSTALLED}/lib"), *machine.entries(machine.path("usr/lib"))]
    for folder in folders:
        for name in (_LIBRARY, f"{_LIBRARY}.2"):
            if machine.exists(folder / name):
                return folder / name
    return None


def _libraries(needed: bool, release: tuple[str, str], library: Path | None, machine: Machine) -> Finding:
    told, source = release
    if library is None:
        return Finding(
            SUBJECT,
            "libraries",
            bad(needed),
            f"{source} says {told}, but {_LIBRARY} is missing" if told else "none",
            "programs reach a card, or its emulation, through XRT",
            "card: AMD's package xrt_202210.2.13.466 (docs/smartssd.md); emulation on Debian: sudo apt install libxrt1",
        )
    found = f"{told or 'unknown version'}, /{library.relative_to(machine.root)}"
    numbers = version(told)[:2]
    if numbers == _TESTED or not numbers:
        return Finding(SUBJECT, "libraries", good(needed), found)
    known = any(numbers == supported or numbers > _SUPPORTED[-1] for supported in _SUPPORTED)
    return Finding(
        SUBJECT,
        "libraries",
        bad(needed, State.WARNING),
        found,
        "only 2.13 was run by this project"
        + ("; this one has the same calls by its documents" if known else ", and this one is not known to be alike"),
        "use it and look closely, or install xrt_202210.2.13.466 (docs/smartssd.md)",
    )


def _environment(needed: bool, release: tuple[str, str], machine: Machine) -> Finding:
    named = machine.environ.get("XILINX_XRT")
    if named:
        there = machine.exists(Path(named) / "lib")
        return Finding(
            SUBJECT,
            "XILINX_XRT",
            good(needed) if there else bad(needed),
            named if there else f"{named}, which has no lib",
            "" if there else "XRT loads its drivers from $XILINX_XRT/lib",
            "" if there else "source /opt/xilinx/xrt/setup.sh",
        )
    if version(release[0])[:2] >= _FINDS_ITSELF:
        return Finding(SUBJECT, "XILINX_XRT", good(needed), "not set, and this XRT does without")
    return Finding(
        SUBJECT,
        "XILINX_XRT",
        bad(needed),
        "not set",
        "XRT before 2.16 loads its drivers from $XILINX_XRT/lib and from nowhere else",
        "source /opt/xilinx/xrt/setup.sh (Debian's package: a folder with lib -> /usr/lib/x86_64-linux-gnu)",
    )


def _drivers(needed: bool, release: tuple[str, str], machine: Machine) -> Iterator[Finding]:
    drivers = ("xocl", "xclmgmt")
    absent = [driver for driver in drivers if not machine.exists(machine.path(f"sys/module/{driver}"))]
    if absent:
        yield Finding(
            SUBJECT,
            "drivers",
            bad(needed),
            f"not loaded: {', '.join(absent)}",
            "without XRT's drivers in the kernel a card is only a number on the bus",
            f"sudo modprobe -a {' '.join(absent)}; if not found: "
            "sudo apt install linux-headers-$(uname -r) && sudo dkms autoinstall",
        )
    for driver in drivers:
        told = machine.text(machine.path(f"sys/module/{driver}/version")) or ""
        if driver in absent:
            continue
        if version(told)[:2] != version(release[0])[:2] and version(told) and version(release[0]):
            yield Finding(
                SUBJECT,
                f"driver {driver}",
                bad(needed, State.WARNING),
                f"{told.split(',')[0]}, libraries {release[0]}",
                "drivers and libraries of different releases fail in odd ways",
                "install one release of XRT, then reboot",
            )
        else:
            yield Finding(SUBJECT, f"driver {driver}", good(needed), told.split(",")[0] or "loaded")


def _pyxrt(needed: bool, machine: Machine) -> Finding:
    # In a process of its own: a module built for another Python or XRT may do worse than raise.
    answer = machine.run([sys.executable, "-c", "import pyxrt; pyxrt.device; print(pyxrt.__file__)"], _SECONDS)
    if answer is not None and answer[0] == 0:
        return Finding(SUBJECT, "pyxrt", good(needed), answer[1])
    shipped = [each for each in machine.entries(machine.path(f"{INSTALLED}/python")) if each.name.startswith("pyxrt")]
    if answer is None or answer[0] < 0:
        why = "its import hangs or crashes"
    elif shipped:
        why = f"/{shipped[0].relative_to(machine.root)} is there, but: {answer[1]}"
    else:
        why = "not found"
    return Finding(
        SUBJECT,
        "pyxrt",
        bad(needed),
        why,
        f"the xrt driver speaks to XRT through it; this is Python {sys.version_info.major}.{sys.version_info.minor}, "
        "and XRT's own is built for the system's",
        "source /opt/xilinx/xrt/setup.sh puts XRT's on PYTHONPATH; for another Python: make pyxrt, and "
        "PYTHONPATH=build/pyxrt (docs/smartssd.md)",
    )
