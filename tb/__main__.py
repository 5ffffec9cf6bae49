"""python -m tb: simulate the kernel's RTL against the NumPy model and the native library.

    python -m tb [--suite core|full] [--rtl open|vitis|FOLDER] [--waves] [--filter REGEX] [MODULE …]

Prints a line for every test and, at the end, failures and functional coverage; exits with 1 unless all is as it should
be, with 2 when a tool or the RTL is missing. build/cosim gets the logs and waveforms and, when all modules were run,
build/reports gets cosim.json and coverage.json. The environment variables SUITE, RTL and WAVES=1 stand for the options;
SEED is that of the random tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tb.coverage import Coverage
from tb.mutants import MUTANTS, simulate_mutant
from tb.rtl import Rtl, RtlError, find_rtl, make_open_rtl
from tb.simulate import Result, build_simulator, simulate

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
# The longest first, so that none is left to run alone.
MODULES = ("stalls", "random", "sizes", "filter", "control", "errors", "formats", "figures", "real_keys")


def main() -> int:
    """The command line; returns the exit status."""
    options = _arguments()
    try:
        return _run(options)
    except RtlError as error:
        print(f"tb: {error}", file=sys.stderr)
        return 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tb", description="Simulate the kernel's RTL against its models.")
    suite, rtl = os.environ.get("SUITE", "core"), os.environ.get("RTL", "open")
    parser.add_argument("--suite", choices=("core", "full"), default=suite, help="core: what the project's tests run")
    parser.add_argument("--rtl", default=rtl, help="open, vitis, or a folder that hls2rtl or Vitis HLS wrote")
    waves = os.environ.get("WAVES", "0") not in ("", "0")
    parser.add_argument("--waves", action="store_true", default=waves, help="write build/cosim/…/dump.vcd")
    parser.add_argument("--filter", help="only the tests whose names match this regular expression")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=f"of {', '.join(MODULES)}; all unless named")
    options = parser.parse_args()
    unknown = set(options.modules) - set(MODULES)
    if unknown:
        parser.error(f"there is no module {', '.join(sorted(unknown))}: choose from {', '.join(MODULES)}")
    return options


def _run(options: argparse.Namespace) -> int:
    began = time.monotonic()
    rtl = _rtl(options.rtl)
    print(f"rtl        {_shown(rtl.sources[0].parent)}", flush=True)
    print("simulator  compiling takes a minute, unless it was compiled before …", flush=True)
    simulator = build_simulator(rtl, BUILD / "sim", options.waves)
    print(f"simulator  {_shown(simulator.folder)}, after {time.monotonic() - began:.0f} s", flush=True)

    modules = [name for name in MODULES if name in options.modules or not options.modules]
    keys = BUILD / "cosim" / "keys.npz"
    skipped = _capture(keys) if "real_keys" in modules else ""
    if skipped:
        modules.remove("real_keys")
        print(f"skipped    real_keys: {skipped}", flush=True)

    native = _native()
    print(f"native     {_shown(native)}", flush=True)
    work = BUILD / "cosim" / options.suite
    environment = {"QK_SUITE": options.suite, "QK_KEYS": str(keys), "HILLINFER_NATIVE": str(native)}
    names = [f"tb.qk_score.test_{name}" for name in modules]
    results = simulate(simulator, names, work, environment, _report, options.filter)
    whole = not options.modules and not options.filter
    if whole and options.suite == "full" and options.rtl == "open":
        for name in MUTANTS:
            mutant = simulate_mutant(name, ROOT / "hls", BUILD / "sim", BUILD / "cosim" / "mutants" / name, environment)
            _report(mutant)
            results.append(mutant)
    failed = [result for result in results if result.error]
    for result in failed:
        print(f"\nFAILED {result.module} {result.name}\n{result.error}")

    coverage = Coverage.total(work / name / "coverage.json" for name in names)
    empty = coverage.empty(without="real" if skipped else "") if whole else []
    print(f"\n{coverage.table()}")
    seconds = time.monotonic() - began
    if whole:
        coverage.save(BUILD / "reports" / "coverage.json")
        _save(options, results, empty, skipped, seconds)
    print(f"\n{len(results) - len(failed)} of {len(results)} tests passed, {len(empty)} bins empty, {seconds:.0f} s")
    return 1 if failed or empty or not results else 0


def _rtl(where: str) -> Rtl:
    if where == "open":
        return make_open_rtl(ROOT, BUILD / "rtl")
    return find_rtl(BUILD / "vitis" / "hls" if where == "vitis" else Path(where))


def _native() -> Path:
    """The library made of the kernel as it is, not one that was installed when the kernel was another."""
    library = BUILD / "native" / "libqk_score.so"
    sources = [*ROOT.glob("hls/**/*.h"), *ROOT.glob("hls/*.cpp")]
    if not library.exists() or library.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        raise RtlError(f"{_shown(library)} is missing or older than the kernel: make csim")
    return library


def _capture(keys: Path) -> str:
    """Make the file of a real model's keys unless it is there; returns why there is none."""
    if keys.exists():
        return ""
    python_path = os.pathsep.join([str(ROOT), str(ROOT / "host")])
    environment = os.environ | {"PYTHONPATH": python_path, "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-m", "tb.real_keys", str(keys)]
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    return (done.stderr.strip().splitlines() or ["capturing keys failed"])[-1] if done.returncode else ""


def _report(result: Result) -> None:
    name = f"{result.module.removeprefix('tb.').removeprefix('qk_score.test_')}.{result.name}"
    print(f"{'FAILED' if result.error else 'passed'}     {name}  {result.seconds:.1f} s", flush=True)


def _save(
    options: argparse.Namespace, results: list[Result], empty: list[tuple[str, str]], skipped: str, seconds: float
) -> None:
    simulated = sum(result.seconds for result in results)
    cycles = sum(result.cycles for result in results)
    report = {
        "suite": options.suite,
        "rtl": options.rtl,
        "seconds": round(seconds, 1),
        "cycles": round(cycles),
        "cycles_per_s": round(cycles / simulated) if simulated else 0,
        "skipped": skipped,
        "empty_bins": [f"{point}: {value}" for point, value in empty],
        "tests": [vars(result) for result in results],
    }
    (BUILD / "reports" / "cosim.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _shown(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    sys.exit(main())
