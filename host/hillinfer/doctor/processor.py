"""What the processor offers to scoring, and which of the native variants uses it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import TYPE_CHECKING

from hillinfer.doctor.finding import Finding, State
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted

if TYPE_CHECKING:
    from hillinfer._native import RowReader

SUBJECT = "processor"
_FEATURES = ("avx2", "avx_vnni", "avx512_vnni")


def examine(machine: Machine, _wanted: Wanted) -> Iterator[Finding]:
    """Cores, instruction sets, the native module and how it reads."""
    yield _cores(machine)
    flags = _flags(machine)
    if flags:
        found = " ".join(name for name in _FEATURES if name in flags) or "none of " + " ".join(_FEATURES)
    else:
        found = f"not told ({platform.machine()})"
    yield Finding(SUBJECT, "instruction sets", State.OK, found)
    try:
        from hillinfer import _native
    except ImportError as error:
        means = "nothing runs without it: scoring, selection and reads are C++"
        yield Finding(SUBJECT, "native module", State.MISSING, str(error), means, "make setup (or pip install again)")
        return
    yield _variant(_native.variant(), _native.variants())
    yield _reads(_native.RowReader())


def _reads(reader: RowReader) -> Finding:
    name, engine = "reads of rows", reader.engine
    fixed = ", registered buffers" if reader.fixed_buffers else ""
    refused = reader.refused
    reader.close()
    if engine == "io_uring":
        return Finding(SUBJECT, name, State.OK, f"{engine}{fixed}")
    means = "the kernel does not give io_uring; threads read, with more time of the processor"
    fix = (
        "Linux 5.11 or later; sysctl kernel.io_uring_disabled=0; in a container, a seccomp profile that allows "
        "io_uring_setup, io_uring_enter and io_uring_register"
    )
    return Finding(SUBJECT, name, State.WARNING, f"threads in pread ({refused})", means, fix)


def _cores(machine: Machine) -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = f"{usable} of {machine.processor()}"
    if usable > 1:
        return Finding(SUBJECT, "cores", State.OK, found)
    means = "the storage device's thread and the model share one core, and nothing overlaps"
    return Finding(SUBJECT, "cores", State.WARNING, found, means, "give the process two cores (taskset, --cpus)")


def _flags(machine: Machine) -> set[str]:
    for line in machine.lines(machine.path("proc/cpuinfo")):
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            return set(value.split())
    return set()


def _variant(chosen: str, possible: list[str]) -> Finding:
    found = f"{chosen} (of {', '.join(possible)})"
    if chosen != "portable":
        return Finding(SUBJECT, "native variant", State.OK, found)
    means = "scoring is several times slower than with AVX2, which every x86 processor since 2015 has"
    fix = "another machine, or a hypervisor that shows AVX2 to its guests"
    return Finding(SUBJECT, "native variant", State.WARNING, found, means, fix)
