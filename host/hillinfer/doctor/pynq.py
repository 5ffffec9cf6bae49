"""PYNQ, for the device ``pynq``: 3.0.1 is the last release that sees cards on the PCI bus, and wants old companions."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from hillinfer.doctor.finding import Finding, State, bad, good
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted

SUBJECT = "PYNQ"
_LAST = "3.0.1"
_FIX = "bash scripts/setup-pynq makes build/pynq-venv: run its bin/hillinfer"


def examine(_machine: Machine, wanted: Wanted) -> Iterator[Finding]:
    """The package in this environment, the companions that break it silently, and what PYNQ cannot do."""
    needed = wanted.uses("pynq")
    version = _version("pynq")
    if version is None:
        means = "the device pynq speaks to the card through it; xrt does without"
        yield Finding(SUBJECT, "pynq", bad(needed), "not in this environment", means, _FIX)
        return
    if version != _LAST:
        means = f"only {_LAST} was run with cards here; later ones see no PCIe cards any more"
        yield Finding(SUBJECT, "pynq", bad(needed), version, means, _FIX)
    else:
        yield Finding(SUBJECT, "pynq", good(needed), version)
    for name, below, why in (
        ("numpy", 2, "PYNQ 3.0.1 uses names that NumPy 2 dropped"),
        ("setuptools", 70, "PYNQ 3.0.1 imports pkg_resources"),
    ):
        found = _version(name)
        if found is not None and int(found.split(".")[0]) >= below:
            yield Finding(SUBJECT, name, bad(needed), found, why, _FIX)
    if needed:
        means = "PYNQ has no P2P buffers: keys lie in the card's memory, 4 GB at most"
        yield Finding(SUBJECT, "P2P", State.WARNING, "never", means, "--device xrt:0 streams what does not fit")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
