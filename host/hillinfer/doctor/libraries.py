"""The kernel on this machine without a card: its C simulation and its RTL, each a shared library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from hillinfer.doctor.finding import Finding, bad, good
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted
from hillinfer.errors import DeviceError

SUBJECT = "kernel"


def examine(_machine: Machine, wanted: Wanted) -> Iterator[Finding]:
    """The two libraries: found, and of this package's ABI."""
    from hillinfer.csd import native, rtl  # here: the engine comes along, which may lack its libraries

    means = "the device native, and tests of the drivers, run the kernel's C++ in it"
    yield _library("C simulation", wanted.uses("native"), means, native.find_library, native.Library)
    means = "the device rtl runs the kernel's RTL in it, clock by clock"
    yield _library("RTL", wanted.uses("rtl"), means, rtl.find_library, rtl.Library)


def _library(name: str, needed: bool, means: str, find: Callable[[], Path], load: Callable[[Path], object]) -> Finding:
    try:
        path = find()
        load(path)
    except DeviceError as error:
        return Finding(SUBJECT, name, bad(needed), "none that can be used", means, str(error))
    return Finding(SUBJECT, name, good(needed), str(path))
