"""The whole way from a C++ source to a SystemVerilog text and a report."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import check, ir, passes
from .build import add_unused, build_process
from .bursts import find_bursts
from .clang import compile_cpp
from .delays import DEFAULT_CLOCK_NS, SHARE
from .design import Design, find_processes, read_design
from .lookahead import add_flags
from .memories import choose_memories, warn_of_large
from .process import Process
from .report import as_text, report
from .schedule import budget_of, schedule_process
from .verilog.control import control_module
from .verilog.dataflow import dataflow_module, module_name
from .verilog.kernel import kernel_module
from .verilog.process import process_module

_RECURSION = 10_000  # a long chain of selects is walked from its end
_LIBRARY = ("hls2rtl_fifo", "hls2rtl_axi_read", "hls2rtl_axi_write")


@dataclass
class Result:
    """design: the kernel as objects; verilog: its own modules; report: what report.json holds."""

    design: Design
    verilog: str
    report: dict[str, Any]

    @property
    def text(self) -> str:
        """The report for reading."""
        return as_text(self.report)

    def write(self, folder: Path) -> None:
        """NAME.sv with all modules, report.json and report.txt."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.design.top}.sv").write_text(f"{library()}\n{self.verilog}")
        (folder / "report.json").write_text(json.dumps(self.report, indent=1) + "\n")
        (folder / "report.txt").write_text(self.text)


def compile_kernel(
    source: Path,
    top: str,
    clock_ns: float = DEFAULT_CLOCK_NS,
    include: Sequence[Path] = (),
    define: Sequence[str] = (),
) -> Result:
    """One kernel. Raises RuleError for a program outside the language, ToolError for a missing tool."""
    return compile_kernels(source, [top], clock_ns, include, define)[0]


def compile_kernels(
    source: Path,
    tops: Sequence[str],
    clock_ns: float = DEFAULT_CLOCK_NS,
    include: Sequence[Path] = (),
    define: Sequence[str] = (),
) -> list[Result]:
    """Several kernels of one source, which is compiled once."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), _RECURSION))
    text, pragmas = compile_cpp(source, include, define)
    parsed = passes.parse(text)
    written, _ = ir.read_module(parsed, set(tops))
    wanted = {top: find_processes(written, top) for top in tops}
    passes.inline(parsed, {*tops, *(symbol for symbols in wanted.values() for symbol in symbols)})
    inlined, _ = ir.read_module(parsed)
    for top in tops:
        check.check(inlined, top, wanted[top], pragmas)
    passes.optimise(parsed)
    module, lines = ir.read_module(parsed)
    budget = budget_of(clock_ns, SHARE)
    results = []
    for top in tops:
        processes: dict[str, Process] = {}
        for symbol in wanted[top]:
            process = build_process(module.functions[symbol], module.types, lines, pragmas)
            add_unused(process, check.stream_uses(inlined.functions[symbol]))
            find_bursts(process)
            add_flags(process, budget)
            choose_memories(process)
            schedule_process(process, budget)
            warn_of_large(process)
            process.name = _unused(process.name, {other.name for other in processes.values()})
            processes[symbol] = process
        design = read_design(module.functions[top], module.types, processes, pragmas)
        results.append(Result(design, _verilog(design), report(design, str(source), clock_ns, budget)))
    return results


def _unused(name: str, taken: set[str]) -> str:
    """Overloads and instances of a template have one name in the source."""
    return next(wanted for wanted in (name, *(f"{name}_{n}" for n in range(2, 1000))) if wanted not in taken)


def library() -> str:
    """The fixed modules that every kernel uses."""
    folder = Path(__file__).parent / "rtl"
    return "\n".join((folder / f"{name}.sv").read_text() for name in _LIBRARY)


def _verilog(design: Design) -> str:
    modules = [process_module(process, module_name(design.top, process.name)) for process in design.processes]
    return "\n".join([*modules, dataflow_module(design), control_module(design), kernel_module(design)])
