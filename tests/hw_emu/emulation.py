"""Whether XRT's emulation is on this machine (scripts/setup puts it there where Debian has it), and pyxrt with it."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import pytest

from scripts.hw_emu import environment
from scripts.hw_emu.environment import Settings
from scripts.hw_emu.errors import EmulationError
from scripts.hw_emu.run import run
from scripts.xrt_binding.__main__ import main as build_pyxrt

ROOT = Path(__file__).resolve().parents[2]


def has_xrt() -> bool:
    try:
        environment.library_folder()
    except EmulationError:
        return False
    return True


needs_xrt = pytest.mark.skipif(not has_xrt(), reason="XRT's runtime is not on this machine (scripts/setup installs it)")


@functools.cache
def pyxrt() -> Path:
    """The folder of pyxrt, built when it is missing or old."""
    path = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])  # cmake is there
    try:
        assert build_pyxrt() == 0
    finally:
        os.environ["PATH"] = path
    return environment.PYXRT


def pytest_inside(*arguments: str, deadline: float = 120.0, python: Path = Path(sys.executable), **settings) -> int:
    """Run tests in the environment, in a process of their own; pytest's exit code."""
    pyxrt()
    command = ["python", "-m", "pytest", "-p", "no:cacheprovider", "-q", *arguments]
    return run(command, Settings(**settings), deadline, python=python, directory=ROOT)
