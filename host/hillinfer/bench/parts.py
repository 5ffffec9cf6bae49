"""All benchmarks, one after the other, each in a process of its own; their summaries in one.

A part that fails leaves its log and a reason, and the others go on. A part whose result is there already need not be
measured again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PARTS: dict[str, tuple[str, ...]] = {
    "scorer": ("scorer_int8_share_of_bound", "scorer_int8_over_torch"),
    "decode": (
        "decode_8k_added_ratio",
        "decode_8k_ratio",
        "decode_32k_ratio",
        "decode_8k_kl_over_raw_sum",
        "prefill_8k_ratio",
    ),
    "big": (
        "big_32k_over_full_offload",
        "big_32k_gqa_over_full_offload",
        "big_32k_over_best_baseline",
        "big_32k_device_copy_over_best_baseline",
        "big_32k_over_reads_bound",
        "moved_fraction",
        "hot_hit_rate",
    ),
    "balance": ("balance_error",),
    "ablation": (),
    "growth": (),
}
"""Commands of ``hillinfer bench``, and the figures each gives to the summary."""

_IN_MEMORY = ("scorer",)  # parts without a cold folder


@dataclass(frozen=True)
class Outcome:
    """How a part went. failure: its last words, where it gave no result."""

    part: str
    seconds: float
    failure: str = ""
    reused: bool = False


def run_parts(
    parts: Sequence[str], folder: Path, *, resume: bool, cold_dir: Path | None, say: Callable[[str], None]
) -> list[Outcome]:
    """Run the parts; their results go to ``folder`` as part.json, and what they print to the terminal.

    resume   leave out parts whose result is there
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
        command = [sys.executable, "-m", "hillinfer.cli", "bench", part, "--output", str(result)]
        if cold_dir is not None and part not in _IN_MEMORY:
            command += ["--cold-dir", str(cold_dir)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        failure = ""
        if done.returncode or not result.is_file():
            words = [line for line in done.stderr.splitlines() if line.strip()]
            failure = words[-1].strip() if words else f"it ended with exit code {done.returncode} and said nothing"
            say(f"{part} FAILED: {failure}")
        outcomes.append(Outcome(part, time.perf_counter() - start, failure))
    return outcomes


def merged(folder: Path, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The flat summary of all parts; a figure that there is not is None, and ``reasons`` says why."""
    summary: dict[str, float | None] = {}
    reasons: dict[str, str] = {}
    failures = {outcome.part: outcome.failure for outcome in outcomes if outcome.failure}
    for part, figures in PARTS.items():
        result = _read(folder / f"{part}.json")
        for name in figures:
            value = result.get("summary", {}).get(name)
            summary[name] = value
            if value is None:
                why = f"bench {part} did not measure it" if result else f"bench {part} was not run"
                reasons[name] = failures.get(part) or result.get("reasons", {}).get(name) or why
    return {
        "summary": summary,
        "reasons": reasons,
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
