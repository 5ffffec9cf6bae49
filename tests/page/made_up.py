"""Reports of every kind, small and made up, in the form in which the commands write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hillinfer.simulation.trace import LayerStep, Positions, Trace
from hillinfer.simulation.trace_file import save

MEASURED = Path(__file__).parents[2] / "docs" / "measured"
"""The project's own measurements: reports as well."""


def every_report(folder: Path) -> Path:
    """A folder with all of them."""
    folder.mkdir(exist_ok=True)
    for path in MEASURED.glob("*.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    for name, report in _REPORTS.items():
        (folder / name).write_text(json.dumps(report))
    save(recording(), folder / "trace.npz")
    return folder


def evaluation() -> dict[str, Any]:
    """Of hillinfer eval: a needle by depth, and a task on which the full cache fails."""
    rows: list[dict[str, Any]] = []
    for policy, budget, score in (("full", 1.0, 0.95), ("hillinfer", 0.1, 0.94), ("streaming-llm", 0.2, 0.3)):
        for context in (1024, 4096):
            for task, by_label in (("needle", {"depth": {"0.1": score, "0.5": score / 2, "0.9": 1.0}}), ("chains", {})):
                full = policy == "full"
                rows.append(
                    {
                        "policy": policy,
                        "budget": budget,
                        "task": task,
                        "context": context,
                        "score": score if task == "needle" else 0.2,
                        "difference": None if full else score - 0.95,
                        "interval": None if full else [score - 1, score - 0.9],
                        "items": 12,
                        "nll_difference": 0.0 if full else 1 - score,
                        "device_bytes": 1000 * budget,
                        "hot_bytes": 0,
                        "counts": task == "needle",
                        "by_label": by_label,
                    }
                )
    return {"kind": "hillinfer-eval", "version": 1, "model": "tiny", "seed": 0, "rows": rows, "items": []}


def recording(layers: int = 3, steps: int = 5, tokens: int = 200) -> Trace:
    """Of a run that selects the newest and a few that stay, a part of which is hot."""
    works, selected, hot, host, pinned = [], [], [], [], []
    for step in range(steps):
        there = tokens + step
        mask = np.zeros(there, bool)
        mask[there - 80 :] = True
        mask[20:40] = True
        chosen = np.array([3, 25, 30, 90 + step, there - 2, there - 1])
        work = LayerStep(there, host_scored=there, attended=6, hot_rows=3, cold_rows=2, cold_requests=2)
        works.append([work] * layers)
        selected.append([chosen] * layers)
        hot.append([mask] * layers)
        host.append([np.ones(-(-there // 64), bool)] * layers)
        pinned.append([there - 20] * layers)
    return Trace("tiny", "hillinfer", works, positions=Positions(selected, hot, host, pinned))


def chrome_trace() -> dict[str, Any]:
    """Two tracks that overlap for half of the time."""
    names = [
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": tid, "args": {"name": name}}
        for tid, name in enumerate(("host scores", "cold reads"))
    ]
    spans = [("host score", 0, 0, 1000), ("read", 1, 500, 1000)]
    events = [{"ph": "X", "name": name, "pid": 0, "tid": tid, "ts": ts, "dur": dur} for name, tid, ts, dur in spans]
    return {"traceEvents": names + events, "displayTimeUnit": "ms"}


def _kernel() -> dict[str, Any]:
    row = {"cycles_per_beat": 1.003, "cycles_per_beat_goal": 1.01, "fixed_cycles": 199, "latency_cycles": 185}
    row |= {"gbps_at_200mhz": 12.8, "gbps_at_300mhz": 19.1, "lut": 38200.0, "ff": 32700.0, "dsp": 280.0, "bram": 101.0}
    missed = row | {"cycles_per_beat": 1.02}
    card = {"lut": 331680, "ff": 663360, "dsp": 1340, "bram": 650}
    return {"formats": {"int8": row, "int4": missed}, "memory_gb_per_s": {"ddr_measured": 15.4}, "card": card}


def _validation() -> dict[str, Any]:
    rows = [
        {
            "policy": policy,
            "context": context,
            "measured_ms": 10.0 * n,
            "simulated_ms": 11.0,
            "error": 0.1,
        }
        for n, policy in enumerate(("full", "hillinfer"), 1)
        for context in (1024, 4096)
    ]
    return {"kind": "hillinfer-simulate", "version": 1, "rows": rows}


_REPORTS: dict[str, dict[str, Any]] = {
    "eval-small.json": evaluation(),
    "eval-gemma.json": evaluation() | {"model": "another"},
    "timeline.json": chrome_trace(),
    "timeline-simulated.json": chrome_trace(),
    "kernel.json": _kernel(),
    "simulate.json": _validation(),
    "growth.json": {
        "rows": [
            {"context": context, "label": label, "ms": 60.0 + added, "p95_ms": 70.0, "added_ms": added}
            for label, slope in (("stock DynamicCache", 0.01), ("hillinfer α=0.1", 0.001))
            for context in (1024, 4096, 16384)
            for added in [slope * context]
        ],
        "fits": [
            {"label": "stock DynamicCache", "exponent": 1.0, "factor": 0.01},
            {"label": "hillinfer α=0.1", "exponent": 1.0, "factor": 0.001},
        ],
    },
    "io.json": {
        "figures": [
            {
                "kind": "random",
                "engine": engine,
                "row_bytes": 4096,
                "depth": depth,
                "per_s": 1e4 * depth,
                "mib_s": depth,
            }
            for engine in ("io_uring", "pool")
            for depth in (1, 8, 64)
        ]
    },
    "simulate-paper.json": {
        "kind": "hillinfer-simulate-paper",
        "version": 1,
        "rows": [
            {
                "figure": "speedup",
                "what": "speedup over full offload",
                "paper": {"says": "4.21 to 8.56 times", "low": 4.21, "high": 8.56, "unit": "×"},
                "ours": 9.1,
                "unit": "×",
                "difference": 0.06,
                "reproduced": True,
                "why": "the disk <waits> & the card does not",
            }
        ],
        "figures": [
            {
                "figure": "speedup",
                "title": "Speedup by batch",
                "x": "batch",
                "y": "times",
                "series": [{"label": "OPT-6.7B", "x": [1, 4, 10], "y": [4.0, None, 9.1]}],
            }
        ],
    },
    "simulate-fit.json": {
        "kind": "hillinfer-simulate-fit",
        "version": 1,
        "hardware": "paper",
        "model": "llama-3.1-8b",
        "rows": [
            {"method": method, "context": context, "batch": 1, "ms_per_step": ms, "why_not": "" if ms else "no room"}
            for method, context, ms in (
                ("hillinfer", 8192, 15.0),
                ("hillinfer", 65536, 40.0),
                ("full", 8192, 16.0),
                ("full", 65536, None),
            )
        ],
    },
}
