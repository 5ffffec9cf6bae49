"""Whether XRT's emulation is on this machine (scripts/setup puts it there where Debian has it), and tests inside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts.hw_emu import environment
from scripts.hw_emu.environment import Settings
from scripts.hw_emu.errors import EmulationError
from scripts.hw_emu.run import run

ROOT = Path(__file__).resolve().parents[2]


def has_xrt() -> bool:
    try:
        environment.library_folder()
    except EmulationError:
        return False
    return True


needs_xrt = pytest.mark.skipif(not has_xrt(), reason="XRT's runtime is not on this machine (scripts/setup installs it)")


def pytest_inside(*arguments: str, deadline: float = 600.0, python: Path = Path(sys.executable), **settings) -> int:
    """Run tests in the environment, in a process of their own; pytest's exit code."""
    command = ["python", "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    return run(command, Settings(**settings), deadline, python=python, directory=ROOT)
