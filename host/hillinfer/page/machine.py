"""The machine that a page is made on, and what it runs: in words, for a table."""

from __future__ import annotations

import os
import platform
from importlib import metadata

import psutil

from hillinfer import _native
from hillinfer.doctor.machine import Machine
from hillinfer.version import __version__

_LIBRARIES = ("torch", "transformers", "numpy", "matplotlib")


def machine() -> dict[str, str]:
    """Processor and the instruction set that scoring takes of it, memory and system."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "processor": f"{cores} cores of {Machine().processor()} ({_native.variant()})",
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release()}",
    }


def versions() -> dict[str, str]:
    """Of HillInfer, Python and the libraries that figures depend on."""
    found = {"hillinfer": __version__, "Python": platform.python_version()}
    for library in _LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found
