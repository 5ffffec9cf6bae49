"""Runs cocotb test modules on a Verilator build, several at a time, and gathers what came of them."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tb.rtl import CLOCK_NS, REGISTERS_VARIABLE, TOP, Rtl, RtlError
from tb.verilate import build


@dataclass(frozen=True)
class Result:
    """What came of one cocotb test; ``error`` is its message and empty when it passed."""

    module: str
    name: str
    seconds: float
    cycles: float
    error: str


@dataclass(frozen=True)
class Simulator:
    """A build of one RTL, with waveforms or without."""

    rtl: Rtl
    folder: Path
    waves: bool


def build_simulator(rtl: Rtl, cache: Path, waves: bool) -> Simulator:
    """Compile the RTL for cocotb, or find it compiled. RtlError names what is missing or does not compile."""
    try:
        from cocotb_tools import config
    except ModuleNotFoundError:
        raise RtlError("cocotb is missing: pip install cocotb==2.1.0 cocotbext-axi==0.1.28") from None
    # Only the ports are open to cocotb: with every signal open, as cocotb builds it, all takes three times as long.
    flags = ["--vpi", "--public-depth", "1"]
    flags += ["-LDFLAGS", f"-Wl,-rpath,{config.libs_dir} -L{config.libs_dir} -lcocotbvpi_verilator"]
    if waves:
        flags += ["--trace-vcd"]  # FST would want liblz4-dev
    main = config.share_dir / "lib" / "verilator" / "verilator.cpp"
    return Simulator(rtl, build(rtl, cache, main, flags), waves)


def simulate(
    simulator: Simulator,
    modules: Sequence[str],
    work: Path,
    environment: Mapping[str, str],
    report: Callable[[Result], None],
    test_filter: str | None = None,
) -> list[Result]:
    """Run modules side by side, each in a process and a folder (``work``/module) of its own.

    environment is added to the process's own. report is called for every test as soon as its module has ended. A
    module that ends without results gives one Result with the last lines of its log.
    """
    results: list[Result] = []
    with ThreadPoolExecutor(max(1, min(len(modules), os.cpu_count() or 1))) as pool:
        pending = {pool.submit(_run, simulator, module, work / module, environment, test_filter) for module in modules}
        while pending:
            done: set[Future[list[Result]]]
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                for result in future.result():
                    report(result)
                    results.append(result)
    return results


def _run(
    simulator: Simulator, module: str, folder: Path, environment: Mapping[str, str], test_filter: str | None
) -> list[Result]:
    from cocotb_tools.runner import get_runner

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for data in simulator.rtl.data:  # Vitis's memories read their contents from the folder they run in
        shutil.copy(data, folder)
    log, xml = folder / "simulation.log", folder / "results.xml"
    began = time.monotonic()
    with suppress(RuntimeError, SystemExit):  # the results, or their absence, say more
        get_runner("verilator").test(
            test_module=module,
            hdl_toplevel=TOP,
            hdl_toplevel_lang="verilog",
            build_dir=simulator.folder,
            test_dir=folder,
            results_xml=str(xml),
            log_file=log,
            waves=simulator.waves,
            plusargs=["+verilator+rand+reset+2", "+verilator+seed+1"],  # registers begin with noise, as in hardware
            test_filter=test_filter,
            extra_env={**environment, REGISTERS_VARIABLE: str(simulator.rtl.registers.resolve())},
        )
    results = list(_results(module, xml)) if xml.exists() else []
    if results:
        return results
    tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-12:]) if log.exists() else ""
    return [Result(module, "simulation", time.monotonic() - began, 0, f"ended without results, see {log}:\n{tail}")]


def _results(module: str, xml: Path) -> Iterator[Result]:
    for case in ElementTree.parse(xml).getroot().iter("testcase"):
        properties = {item.get("name"): item.get("value", "") for item in case.iter("property")}
        problems = [*case.iter("failure"), *case.iter("error")]
        error = "\n".join(problem.get("message") or problem.text or "failed" for problem in problems)
        cycles = float(properties.get("sim_time_duration", 0)) / CLOCK_NS
        yield Result(module, case.get("name", ""), float(case.get("time", 0)), cycles, error)
