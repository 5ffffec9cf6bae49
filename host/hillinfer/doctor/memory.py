"""Memory, what of it this process may use, and how many files it may open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hillinfer.doctor.finding import Finding, State
from hillinfer.doctor.machine import Machine, number
from hillinfer.doctor.wanted import Wanted

SUBJECT = "memory"
_GIB = 1 << 30
_DEFAULT_MODEL = 2 * _GIB
"""What a run of the default model takes at its peak, with room: 0.5 GB of weights, torch, 20 % of the KV cache."""
_FEW_FILES = 256  # two per layer: 80 layers, and what Python holds


def examine(machine: Machine, _wanted: Wanted) -> Iterator[Finding]:
    """RAM as the kernel counts it, the smallest limit on it, open files."""
    yield _ram(machine)
    limit, source = _limit(machine)
    if limit is not None:
        yield _limited(limit, source)
    yield _files()


def _ram(machine: Machine) -> Finding:
    sizes = {}
    for line in machine.lines(machine.path("proc/meminfo")):
        key, _, rest = line.partition(":")
        value = number(rest.split()[0]) if rest.split() else None
        if value is not None:
            sizes[key] = value * 1024
    available = sizes.get("MemAvailable")
    if available is None:
        return Finding(SUBJECT, "RAM", State.OK, "not told")
    found = f"{available / _GIB:.1f} GiB available of {sizes.get('MemTotal', available) / _GIB:.1f}"
    if available >= _DEFAULT_MODEL:
        return Finding(SUBJECT, "RAM", State.OK, found)
    means = "weights, torch and the hot pool do not fit: the system swaps, or ends the process"
    return Finding(SUBJECT, "RAM", State.WARNING, found, means, "end other programs, or lower --hot-bytes and --dtype")


def _limit(machine: Machine) -> tuple[int | None, str]:
    """The smallest limit of control groups and of the process, in bytes, and where it is set."""
    limits = []
    for line in machine.lines(machine.path("proc/self/cgroup")):
        _, controllers, path = ([*line.split(":", 2), "", ""])[:3]
        if controllers == "":  # version 2
            group = machine.path("sys/fs/cgroup") / path.lstrip("/")
            files = [each / "memory.max" for each in _up(group, machine)]
        elif "memory" in controllers.split(","):
            group = machine.path("sys/fs/cgroup/memory") / path.lstrip("/")
            files = [each / "memory.limit_in_bytes" for each in _up(group, machine)]
        else:
            continue
        limits += [(machine.number(file), f"control group {path or '/'}") for file in files]
    import resource  # here: the module is missing on Windows

    own = resource.getrlimit(resource.RLIMIT_AS)[0]
    if own != resource.RLIM_INFINITY:
        limits.append((own, "ulimit -v"))
    known = [(value, source) for value, source in limits if value is not None and value < 1 << 60]
    return min(known, default=(None, ""))


def _up(group: Path, machine: Machine) -> list[Path]:
    """A control group and those above it."""
    top = machine.path("sys/fs/cgroup")
    return [each for each in (group, *group.parents) if each.is_relative_to(top)]


def _limited(limit: int, source: str) -> Finding:
    found = f"{limit / _GIB:.1f} GiB by {source}"
    if limit >= _DEFAULT_MODEL:
        return Finding(SUBJECT, "limit", State.OK, found)
    means = "a run that needs more is ended by the system, whatever RAM is free"
    fix = "raise it (container: --memory; systemd: MemoryMax=; shell: ulimit -v unlimited), or a smaller model"
    return Finding(SUBJECT, "limit", State.WARNING, found, means, fix)


def _files() -> Finding:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = "no limit" if soft == resource.RLIM_INFINITY else str(soft)
    if soft == resource.RLIM_INFINITY or soft >= _FEW_FILES:
        return Finding(SUBJECT, "open files", State.OK, found)
    means = "the cold pool takes two per layer"
    return Finding(SUBJECT, "open files", State.WARNING, found, means, "ulimit -n 4096")
