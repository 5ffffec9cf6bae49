"""Kernels with one thing wrong: what the testbench must find, or its silence about the real kernel says little."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from tb.rtl import RtlError, find_rtl, run_hls2rtl
from tb.simulate import Result, build_simulator, simulate

# what is wrong: file, the text that stands in it once, and what stands there instead
MUTANTS = {
    "rounding_half_up": ("cast.h", "rest > 2048u || (rest == 2048u && magnitude[0])", "rest >= 2048u"),
    "tree_without_a_term": ("dot.h", "return sum16[0] + sum16[1];", "return sum16[0];"),
    "trailer_maximum_of_the_kept": ("process/compact.h", "if (score > maximum)", "if (keep && score > maximum)"),
}
_MODULES = ("tb.qk_score.test_filter",)
_TESTS = r"ties|shares/fmt=FP16_INT8/keep=0\.0"  # some kept, few, and none


def simulate_mutant(name: str, hls: Path, cache: Path, work: Path, environment: Mapping[str, str]) -> Result:
    """Break a copy of the kernel, make RTL of it and simulate; the result's error says that nothing was noticed."""
    began = time.monotonic()
    file, old, new = MUTANTS[name]
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(hls, work / "hls")
    text = (work / "hls" / file).read_text(encoding="utf-8")
    if text.count(old) != 1:
        raise RtlError(f"tb/mutants.py: hls/{file} holds {text.count(old)} times, not once: {old}")
    (work / "hls" / file).write_text(text.replace(old, new), encoding="utf-8")
    run_hls2rtl(work / "hls" / "qk_score.cpp", work / "rtl")
    simulator = build_simulator(find_rtl(work / "rtl"), cache, waves=False)
    results = simulate(simulator, _MODULES, work / "runs", environment, lambda _: None, _TESTS)
    found = any("RTL and model" in result.error for result in results)
    seconds = time.monotonic() - began
    return Result("tb.mutants", name, seconds, 0, "" if found else f"hls/{file}: {old} → {new} was not noticed")
