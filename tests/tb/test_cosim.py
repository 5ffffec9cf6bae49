"""The core suite of the testbench, as `python -m tb` runs it, reported by subject."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tb.__main__ import MODULES
from tests.hls import builds

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """build/reports/cosim.json of a run of its own; the run's lines go to the terminal as they come (pytest -s)."""
    builds.by_cmake(ROOT / "build" / "native")
    path = ROOT / "build" / "reports" / "cosim.json"
    path.unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "host")])
    done = subprocess.run([sys.executable, "-m", "tb"], cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
    assert path.exists(), f"the testbench did not run: {done.stderr.strip()}"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize("module", MODULES)
def test_subject(report: dict[str, Any], module: str) -> None:
    tests = [test for test in report["tests"] if test["module"].endswith(f".test_{module}")]
    if module == "real_keys" and report["skipped"]:
        pytest.skip(report["skipped"])
    failed = [f"{test['name']}: {test['error']}" for test in tests if test["error"]]
    assert tests
    assert not failed, "\n".join(failed)


def test_nothing_that_was_to_be_covered_is_left_out(report: dict[str, Any]) -> None:
    assert not report["empty_bins"]
