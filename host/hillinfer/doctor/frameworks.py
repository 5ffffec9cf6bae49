"""torch and transformers: there, importable, new enough; and whether torch sees a GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import metadata

from hillinfer.doctor.finding import Finding, State
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted

SUBJECT = "frameworks"
_OLDEST = {"torch": (2, 6), "transformers": (5, 0)}  # pyproject.toml's
_SECONDS = 120  # a first import from a network drive is slow
_GPUS = "import torch; print(', '.join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())))"


def examine(machine: Machine, _wanted: Wanted) -> Iterator[Finding]:
    """Versions by their metadata; torch itself is started in a process of its own, which may fail as it likes."""
    for name, oldest in _OLDEST.items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            fix = f'{sys.executable} -m pip install "{name}>={".".join(map(str, oldest))}"'
            yield Finding(SUBJECT, name, State.MISSING, "not installed", "no model runs without it", fix)
            continue
        if _release(version) < oldest:
            fix = f'{sys.executable} -m pip install "{name}>={".".join(map(str, oldest))}"'
            yield Finding(SUBJECT, name, State.MISSING, version, "too old: calls that are used here are missing", fix)
        else:
            yield Finding(SUBJECT, name, State.OK, version)
    yield _torch(machine)


def _release(version: str) -> tuple[int, ...]:
    parts = version.split("+")[0].split(".")[:2]
    return tuple(int(part) for part in parts if part.isdigit())


def _torch(machine: Machine) -> Finding:
    answer = machine.run([sys.executable, "-c", _GPUS], _SECONDS)
    if answer is None or answer[0] != 0:
        said = "no answer within two minutes" if answer is None else answer[1] or f"ended with {answer[0]}"
        means = "torch is installed but does not start"
        fix = f"{sys.executable} -m pip install --force-reinstall torch"
        return Finding(SUBJECT, "torch starts", State.MISSING, said, means, fix)
    gpus = answer[1]
    found = f"yes; GPU: {gpus}" if gpus else "yes; no GPU"
    means = "the model runs on the processor unless a program puts it elsewhere"
    return Finding(SUBJECT, "torch starts", State.OK, found, means)
