"""What the processor offers to scoring, and which of the native variants uses it."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator

from hillinfer.doctor.finding import Finding, State
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted

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
    reader = _native.RowReader()
    try:
        found = "queued in the kernel (io_submit)" if reader.in_kernel else "by threads"
    finally:
        reader.close()
    if found.startswith("queued"):
        yield Finding(SUBJECT, "reads of rows", State.OK, found)
    else:
        means = "the kernel gives no context for asynchronous reads; threads do them, with more time of the processor"
        fix = "fs.aio-max-nr may be used up: cat /proc/sys/fs/aio-nr; in a container its filter may forbid io_setup"
        yield Finding(SUBJECT, "reads of rows", State.WARNING, found, means, fix)


def _cores(machine: Machine) -> Finding:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    lines = machine.lines(machine.path("proc/cpuinfo"))
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), platform.machine())
    found = f"{usable} of {model}"
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
