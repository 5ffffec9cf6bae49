"""The core suite of the testbench, as `python -m tb` runs it, reported by subject."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tb.__main__ import MODULES
from tb.rtl import ARGUMENTS, RegisterMap
from tests.hls import builds

ROOT = Path(__file__).resolve().parents[2]


def run_tb(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run it on the core suite; its lines go to the terminal as they come (pytest -s)."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    environment |= {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "host")]), "SUITE": "core"}
    command = [sys.executable, "-m", "tb", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """build/reports/cosim.json of a run of its own."""
    builds.native_library().touch()  # newer than the kernel, changed or not
    path = ROOT / "build" / "reports" / "cosim.json"
    path.unlink(missing_ok=True)
    done = run_tb("--rtl", "open")
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


def test_the_same_testbench_takes_a_vitis_solution(report: dict[str, Any], tmp_path: Path) -> None:
    """Verilog in one folder, registers in a driver's header, no axi_error: the layout, around the open flow's RTL."""
    assert report["tests"]
    verilog, driver = tmp_path / "syn" / "verilog", tmp_path / "impl" / "misc" / "drivers" / "src"
    for folder in (verilog, driver):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / "build" / "rtl" / "qk_score.sv", verilog)
    registers = RegisterMap.read(ROOT / "build" / "rtl" / "report.json")
    (driver / "xqk_score_hw.h").write_text(
        "".join(f"#define XQK_SCORE_CONTROL_ADDR_{name.upper()}_DATA {registers[name]:#x}\n" for name in ARGUMENTS)
    )
    done = run_tb("--rtl", tmp_path, "errors", "filter", "--filter", "thresholds|memory_errors")
    assert done.returncode == 0, done.stderr


def test_rtl_that_is_missing_is_said_in_one_line(tmp_path: Path) -> None:
    done = run_tb("--rtl", tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"tb: {tmp_path} holds no Verilog of qk_score; make rtl writes that of the open flow"
    ]
