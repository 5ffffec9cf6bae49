"""python -m scripts.bench_kernel: the kernel's figures, measured in simulation, as a table and as JSON.

    python -m scripts.bench_kernel [--rtl open|vitis|FOLDER] [--output FILE]

Measured on the RTL: cycles from launch to interrupt, and from the last key to the last trailer. Derived from them: GB/s
at a clock, as if the card reached it, and its share of what memory can give. Estimated by yosys: LUTs, FFs, DSPs, BRAMs
(only for the open flow's RTL). Nothing here was measured on a card.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from scripts.bench_kernel.measure import Variant, build_loop, run, variants
from scripts.synth_estimate import CARD, GOALS, estimate
from tb.qk_model import BEAT_BYTES
from tb.rtl import RegisterMap, RtlError, find_rtl, make_open_rtl

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
CLOCKS_MHZ = (200, 300)
MEMORY_GB_PER_S = {"ddr_measured": 15.4, "ddr_theory": 19.2, "nand_p2p": 3.2}  # of the SmartSSD
MEMORY_LATENCY = 100  # cycles: what a memory that is not ideal may take


def main() -> int:
    """The command line; 1 when a goal is missed, 2 when a tool or the RTL is missing."""
    parser = argparse.ArgumentParser(prog="bench-kernel", description="Measure the kernel in simulation.")
    parser.add_argument("--rtl", default="open", help="open, vitis, or a folder that hls2rtl or Vitis HLS wrote")
    parser.add_argument("--output", type=Path, default=BUILD / "reports" / "kernel.json")
    options = parser.parse_args()
    try:
        return _bench(options.rtl, options.output)
    except RtlError as error:
        print(f"bench-kernel: {error}", file=sys.stderr)
        return 2


def _bench(where: str, output: Path) -> int:
    is_open = where == "open"
    rtl = make_open_rtl(ROOT, BUILD / "rtl") if is_open else find_rtl(_folder(where))
    print("building the simulator …", flush=True)
    program, registers = build_loop(rtl, BUILD / "sim"), RegisterMap.read(rtl.registers)
    resources = _resources(rtl.sources[0].parent) if is_open else {}
    formats = {each.name: measure(each, program, registers) | resources for each in variants()}
    missed = _missed(formats)
    report = {
        "rtl": where,
        "measured_in": "simulation (Verilator), memory that never waits",
        "estimated_by": "yosys" if resources else None,
        "memory_gb_per_s": MEMORY_GB_PER_S,
        "card": CARD,
        "formats": formats,
        "goals_missed": missed,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(table(formats))
    for line in missed:
        print(f"bench-kernel: {line}", file=sys.stderr)
    return 1 if missed else 0


def measure(variant: Variant, program: Path, registers: RegisterMap) -> dict[str, Any]:
    """One variant's figures."""
    launch = variant.launch()
    beats = launch.n_tokens * launch.geometry.row_beats
    ran, behind = (run(program, registers, launch, BUILD / "bench", latency) for latency in (0, MEMORY_LATENCY))
    figures: dict[str, Any] = {
        "beats": beats,
        "tokens": launch.n_tokens,
        "cycles": ran.cycles,
        "cycles_per_beat": round(ran.cycles / beats, 5),
        "cycles_per_beat_goal": variant.goal,
        f"cycles_per_beat_memory_{MEMORY_LATENCY}": round(behind.cycles / beats, 5),
        "fixed_cycles": ran.cycles - round(beats * launch.geometry.passes),
        "latency_cycles": ran.latency_cycles,
    }
    for mhz in CLOCKS_MHZ:
        rate = BEAT_BYTES * beats / ran.cycles * mhz * 1e6 / 1e9
        figures[f"gbps_at_{mhz}mhz"] = round(rate, 3)
        for memory, limit in MEMORY_GB_PER_S.items():
            figures[f"share_of_{memory}_at_{mhz}mhz"] = round(rate / limit, 3)
    return figures | {"tokens_per_s": round(launch.n_tokens / ran.seconds), "cycles_per_s": round(ran.cycles_per_s)}


def table(formats: dict[str, dict[str, Any]]) -> str:
    """The figures for people."""
    lines = [
        f"{'':<16}{'beats':>7}{'cycles':>9}{'fixed':>7}{'last key':>10}{'GB/s at':>10}{'GB/s at':>9}"
        f"{'of DDR, 300 MHz':>19}{'of NAND':>9}{'simulated':>12}",
        f"{'':<16}{'':>7}{'a beat':>9}{'':>7}{'→ trailer':>10}{'200 MHz':>10}{'300 MHz':>9}"
        f"{'15.4':>10}{'19.2':>9}{'3.2':>9}{'tokens/s':>12}",
    ]
    for name, row in formats.items():
        shares = (row[f"share_of_{memory}_at_300mhz"] for memory in MEMORY_GB_PER_S)
        measured, theory, nand = shares
        lines.append(
            f"{name:<16}{row['beats']:>7}{row['cycles_per_beat']:>9.4f}{row['fixed_cycles']:>7}"
            f"{row['latency_cycles']:>10}{row['gbps_at_200mhz']:>10.2f}{row['gbps_at_300mhz']:>9.2f}"
            f"{measured:>10.0%}{theory:>9.0%}{nand:>9.0%}{row['tokens_per_s']:>12,}"
        )
    row = next(iter(formats.values()))
    if "lut" in row:
        taken = ", ".join(f"{row[kind]:,.0f} {kind.upper()} ({row[kind] / CARD[kind]:.1%})" for kind in CARD)
        lines.append(f"one kernel for all formats, estimated by yosys: {taken}")
    return "\n".join(lines)


def _missed(formats: dict[str, dict[str, Any]]) -> list[str]:
    lines = [
        f"{name}: {row['cycles_per_beat']:.4f} cycles per key beat, the goal is {row['cycles_per_beat_goal']}"
        for name, row in formats.items()
        if row["cycles_per_beat"] > row["cycles_per_beat_goal"]
    ]
    row = next(iter(formats.values()))
    for kind, goal in GOALS.items():
        if row.get(kind, 0) > goal * CARD[kind]:
            lines.append(f"{row[kind] / CARD[kind]:.1%} of the card's {kind} (an estimate), the goal is {goal:.0%}")
    return lines


def _resources(rtl: Path) -> dict[str, float]:
    total: dict[str, float] = estimate(rtl, BUILD / "reports" / "synth.json")["total"]
    return total


def _folder(where: str) -> Path:
    return BUILD / "vitis" / "hls" if where == "vitis" else Path(where)


if __name__ == "__main__":
    sys.exit(main())
