"""The suite on one driver, in a process of its own with a deadline; cards are emulated (scripts/hw_emu)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scripts.conformance.collector import DRIVER, OUTCOMES, REPORT
from scripts.hw_emu import environment
from scripts.hw_emu.errors import EmulationError
from scripts.hw_emu.run import run
from scripts.rtl_device.build import build_library
from tb.rtl import RtlError

ROOT = Path(__file__).resolve().parents[2]
DRIVERS = ("software", "native", "rtl", "xrt", "pynq")
CARDS = ("xrt", "pynq")
DEADLINE_SECONDS = 600.0
_SUITE = (
    "-m",
    "pytest",
    "-q",
    "--no-header",
    "-o",
    "faulthandler_timeout=120",
    "-p",
    "scripts.conformance.collector",
    "tests/conformance",
)

Outcomes = dict[str, list[str]]


def run_driver(driver: str, *, kernel: str = "rtl", deadline: float = DEADLINE_SECONDS) -> Outcomes:
    """Names of the tests that passed, failed, were skipped, do not apply; what pytest says goes to stdout.

    kernel   what computes on an emulated card: "rtl" or "native"
    A run that does not end, or ends badly, is a failure of its own ("the run").
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        with _environment({DRIVER: driver, REPORT: str(report)}):
            code = _emulated(driver, kernel, deadline) if driver in CARDS else _here(deadline)
        outcomes: Outcomes = json.loads(report.read_text()) if report.exists() else {each: [] for each in OUTCOMES}
    if code > 1 or (code and not outcomes["failed"]) or not outcomes["passed"]:  # 1: tests failed, as they are told
        outcomes["failed"].append(f"the run: exit code {code}")
    return outcomes


def _here(deadline: float) -> int:
    process = subprocess.Popen([sys.executable, *_SUITE], cwd=ROOT, start_new_session=True)
    try:
        return process.wait(deadline)
    except subprocess.TimeoutExpired:
        print(f"conformance: stopped after {deadline:g} s", file=sys.stderr)
        return 124
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _emulated(driver: str, kernel: str, deadline: float) -> int:
    try:
        if kernel == "rtl":
            build_library(ROOT, ROOT / "build" / "rtl")  # pyxrt is built where the environment is made
        python = environment.pynq_python() if driver == "pynq" else Path(sys.executable)
        settings = environment.Settings(kernel=kernel)
        return run([str(python), *_SUITE], settings, deadline, python=python, directory=ROOT)
    except (EmulationError, RtlError) as error:
        print(f"conformance: {error}", file=sys.stderr)
        return 2


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
