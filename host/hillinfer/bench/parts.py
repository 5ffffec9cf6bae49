"""All benchmarks, one after the other, each in a process of its own; their summaries in one.

A part that fails leaves its log and a reason, and the others go on. A part whose result is there already need not be
measured again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS: dict[str, tuple[str, ...]] = {
    "scorer": ("scorer_int8_share_of_bound", "scorer_int8_over_torch", "scorer_int8_over_torch_held"),
    "decode": (
        "decode_8k_added_ratio",
        "decode_8k_ratio",
        "decode_8k_over_floor",
        "decode_32k_ratio",
        "decode_8k_kl_over_raw_sum",
        "prefill_8k_ratio",
    ),
    "big": (
        "big_32k_over_full_offload",
        "big_32k_gqa_over_full_offload",
        "big_32k_over_best_baseline",
        "big_32k_margin_over_best_baseline",
        "big_32k_device_copy_over_best_baseline",
        "big_32k_device_copy_margin_over_best_baseline",
        "big_32k_over_reads_bound",
        "big_32k_gqa_over_reads_bound",
        "big_32k_gqa_batch_over_reads_bound",
        "moved_fraction",
        "hot_hit_rate",
    ),
    "balance": ("balance_error",),
    "ablation": (),
    "growth": (),
}
"""Commands of ``hillinfer bench``, and the figures each gives to the summary."""

QUICK: dict[str, tuple[str, ...]] = {
    "scorer": ("--quick",),
    "decode": ("--contexts", "64,512", "--synthetic", "", "--tokens", "600", "--steps", "8", "--passages", "1"),
    "big": ("--lines", "gqa:1024:1:4", "--rounds", "1"),
    "balance": ("--tokens", "2048", "--steps", "4"),
    "ablation": ("--tokens", "1024"),
    "growth": ("--contexts", "256,512"),
}
"""Arguments with which a part takes a minute at most, and gives none of the figures."""

_IN_MEMORY = ("scorer",)  # parts without a cold folder
_WORDS = 20  # of a part's last lines, one of which says why it failed


@dataclass(frozen=True)
class Outcome:
    """How a part went. failure: its last words, where it gave no result."""

    part: str
    seconds: float
    failure: str = ""
    reused: bool = False


def run_parts(
    parts: Sequence[str],
    folder: Path,
    *,
    resume: bool,
    quick: bool,
    cold_dir: Path | None,
    say: Callable[[str], None],
    silent: bool = False,
) -> list[Outcome]:
    """Run the parts; their results go to ``folder`` as part.json, and what they print to stdout.

    resume   leave out parts whose result is there
    quick    try all of them out: the figures that count are not measured
    say      told what goes on, the parts' own progress too
    silent   what they print goes nowhere: somebody wants stdout for JSON
    """
    outcomes = []
    for part in parts:
        result = folder / f"{part}.json"
        if resume and result.is_file():
            say(f"{part}: its result is there, not measured again")
            outcomes.append(Outcome(part, 0.0, reused=True))
            continue
        result.unlink(missing_ok=True)  # an old result must not pass for this run's
        say(f"{part} ...")
        start = time.perf_counter()
        arguments = ["bench", part, "--output", str(result), *(QUICK[part] if quick else ())]
        if cold_dir is not None and part not in _IN_MEMORY:
            arguments += ["--cold-dir", str(cold_dir)]
        code, words = run_part(arguments, say, silent)
        failure = ""
        if code or not result.is_file():
            failure = words or f"it ended with exit code {code} and said nothing"
            say(f"{part} FAILED: {failure}")
        outcomes.append(Outcome(part, time.perf_counter() - start, failure))
    return outcomes


def run_part(arguments: Sequence[str], say: Callable[[str], None], silent: bool = False) -> tuple[int, str]:
    """One command of ``hillinfer`` in a process of its own: its exit code, and its last words on stderr."""
    command = [sys.executable, "-m", "hillinfer.cli", *arguments]
    last: deque[str] = deque(maxlen=_WORDS)
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL if silent else None, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.strip():
                last.append(line.strip())
                say(f"  {line.rstrip()}")
        code = process.wait()
    errors = [line for line in last if "error" in line.lower()]
    return code, (errors or list(last) or [""])[-1]


def merged(folder: Path, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The flat summary of all parts; a figure that there is not is None, and ``reasons`` says why.

    ``bounds`` are the parts' own: what stops a figure here, and how far it is from that (hillinfer.bench.bounds).
    """
    summary: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    bounds: dict[str, Any] = {}
    failures = {outcome.part: outcome.failure for outcome in outcomes if outcome.failure}
    for part, figures in PARTS.items():
        result = _read(folder / f"{part}.json")
        bounds.update(result.get("bounds", {}))
        for name in figures:
            value = result.get("summary", {}).get(name)
            summary[name] = value
            if value is None:
                why = f"bench {part} did not measure it" if result else f"bench {part} was not run"
                reasons[name] = failures.get(part) or result.get("reasons", {}).get(name) or why
    return {
        "summary": summary,
        "reasons": reasons,
        "bounds": bounds,
        "parts": {
            outcome.part: {"seconds": outcome.seconds, "failure": outcome.failure or None, "reused": outcome.reused}
            for outcome in outcomes
        },
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
