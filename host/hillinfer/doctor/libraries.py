"""The kernel on this machine without a card: its C simulation and its RTL, each a shared library."""

from __future__ import annotations

from collections.abc import Iterator

from hillinfer.doctor.finding import Finding, bad, good
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted
from hillinfer.errors import DeviceError

SUBJECT = "kernel"


def examine(_machine: Machine, wanted: Wanted) -> Iterator[Finding]:
    """The two libraries."""
    yield _native(wanted.uses("native"))


def _native(needed: bool) -> Finding:
    from hillinfer.csd import native  # here: the engine comes along, which may lack its libraries

    try:
        path = native.find_library()
        native.Library(path)
    except DeviceError as error:
        means = "the device native, and tests of the drivers, run the kernel's C++ in it"
        return Finding(SUBJECT, "C simulation", bad(needed), "none that can be used", means, str(error))
    return Finding(SUBJECT, "C simulation", good(needed), str(path))
