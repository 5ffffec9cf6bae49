"""make synth-estimate: yosys's estimate of what the kernel takes of the SmartSSD's FPGA.

    python -m scripts.synth_estimate [--rtl FOLDER] [--output FILE]

An estimate: another synthesiser than the card's (Vivado), and no placement, so no timing. The cells of the open flow's
Verilog, AXI masters and control registers included, are counted after technology mapping for UltraScale+. It takes
eight minutes or so on one core, and none when the RTL has not changed since.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TOP = "qk_score"

# The dynamic region of the SmartSSD's KU15P (UG1382): what a kernel can have.
CARD = {"lut": 331_000, "ff": 680_000, "dsp": 1341, "bram": 646}
# Most of it that the kernel is to take (docs/kernel.md).
GOALS = {"lut": 0.20, "dsp": 0.22, "bram": 0.20}

# What one cell takes, by how its name begins. Distributed memories and shift registers are made of LUTs; a bram is a
# RAMB36. Carries, inverters and wide multiplexers have places of their own beside the LUTs.
_COSTS = {
    "LUT": ("lut", 1.0),
    "SRL": ("lut", 1.0),
    "RAM32M16": ("lut", 8.0),
    "RAM64M8": ("lut", 8.0),
    "RAM32M": ("lut", 4.0),
    "RAM64M": ("lut", 4.0),
    "RAM32X1": ("lut", 1.0),
    "RAM64X1": ("lut", 1.0),
    "RAM128X1": ("lut", 2.0),
    "RAM256X1": ("lut", 4.0),
    "RAM512X1": ("lut", 8.0),
    "RAMB36": ("bram", 1.0),
    "RAMB18": ("bram", 0.5),
    "FD": ("ff", 1.0),
    "DSP": ("dsp", 1.0),
}
_FREE = ("CARRY", "INV", "MUXF", "GND", "VCC", "BUF")


def resources(cells: Mapping[str, int]) -> dict[str, float]:
    """LUTs, FFs, DSPs and BRAMs of cells by type; ValueError for a cell of the technology whose cost is unknown."""
    taken: Counter[str] = Counter(dict.fromkeys(CARD, 0))
    for cell, count in cells.items():
        longest = max((prefix for prefix in _COSTS if cell.startswith(prefix)), key=len, default="")
        if longest:
            kind, cost = _COSTS[longest]
            taken[kind] += count * cost  # type: ignore[assignment]
        elif not cell.startswith(_FREE):
            raise ValueError(f"what does a {cell} cost? It is not among the cells that scripts/synth_estimate.py knows")
    return dict(taken)


def by_module(modules: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """What each module takes without the modules in it, times its instances; variants by parameters are added up."""
    cells = {name.removeprefix("\\"): module["num_cells_by_type"] for name, module in modules.items()}
    instances: Counter[str] = Counter()

    def count(module: str, times: int) -> None:
        instances[module] += times
        for cell, number in cells[module].items():
            if cell in cells:
                count(cell, times * number)

    count(TOP, 1)
    table: dict[str, dict[str, float]] = {}
    for module, of_module in cells.items():
        own = resources({cell: number for cell, number in of_module.items() if cell not in cells})
        row = table.setdefault(_without_parameters(module), dict.fromkeys(CARD, 0.0))
        for kind, amount in own.items():
            row[kind] += amount * instances[module]
    return table


def _without_parameters(module: str) -> str:
    """fifo of $paramod$1f…\\fifo and of $paramod\\fifo\\WIDTH=…, as yosys names modules with parameters."""
    return module.split("\\")[1] if module.startswith("$paramod") else module


def synthesise(sources: list[Path], folder: Path) -> dict[str, Any]:
    """yosys's statistics (``stat -json``) after mapping to UltraScale+; its log and they go into ``folder``."""
    try:
        from pyosys import libyosys  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        sys.exit("synth-estimate: yosys is missing: pip install pyosys==0.70")
    folder.mkdir(parents=True, exist_ok=True)
    design, log, statistics = libyosys.Design(), folder / "yosys.log", folder / "stat.json"
    for command in (
        f"tee -q -o {log} read_verilog -sv {' '.join(map(str, sources))}",
        f"tee -q -a {log} synth_xilinx -family xcup -noiopad -noclkbuf -top {TOP}",
        f"tee -q -o {statistics} stat -json -top {TOP}",
    ):
        libyosys.run_pass(command, design)
    result: dict[str, Any] = json.loads(statistics.read_text(encoding="utf-8"))
    return result


def estimate(rtl: Path, output: Path) -> dict[str, Any]:
    """The estimate of the Verilog in a folder: the file ``output`` if it is of this Verilog, else made anew."""
    sources = sorted(path for suffix in ("*.sv", "*.v") for path in rtl.glob(suffix))
    if not sources:
        sys.exit(f"synth-estimate: {rtl} holds no Verilog: make rtl")
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()
    if output.exists():
        known: dict[str, Any] = json.loads(output.read_text(encoding="utf-8"))
        if known.get("rtl_sha256") == digest:
            return known
    print("yosys maps the kernel to UltraScale+ (some eight minutes) …", flush=True)
    began = time.monotonic()
    statistics = synthesise(sources, ROOT / "build" / "synth")
    modules = by_module(statistics["modules"])
    total = {kind: sum(row[kind] for row in modules.values()) for kind in CARD}
    result = {
        "estimate": True,
        "tool": statistics["creator"].split(" (")[0],
        "rtl_sha256": digest,
        "seconds": round(time.monotonic() - began),
        "card": CARD,
        "goals": GOALS,
        "total": total,
        "share": {kind: round(amount / CARD[kind], 4) for kind, amount in total.items()},
        "modules": modules,
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


def table(result: Mapping[str, Any]) -> str:
    """The estimate for people: modules by size, the total, its share of the card and the goals."""
    kinds = ("lut", "ff", "dsp", "bram")
    rows = sorted(result["modules"].items(), key=lambda row: -row[1]["lut"])
    lines = [f"{'estimate (yosys)':<28}" + "".join(f"{kind:>10}" for kind in kinds)]
    lines += [f"{name:<28}" + "".join(f"{row[kind]:>10,.0f}" for kind in kinds) for name, row in rows]
    lines.append(f"{'total':<28}" + "".join(f"{result['total'][kind]:>10,.0f}" for kind in kinds))
    lines.append(f"{'of the card':<28}" + "".join(f"{result['share'][kind]:>10.1%}" for kind in kinds))
    goals = "".join(f"{GOALS[kind]:>10.0%}" if kind in GOALS else f"{'-':>10}" for kind in kinds)
    return "\n".join([*lines, f"{'goal, at most':<28}{goals}"])


def main() -> int:
    """The command line; 1 when the kernel takes more than it is to."""
    parser = argparse.ArgumentParser(prog="synth-estimate", description="Estimate the FPGA resources of the kernel.")
    parser.add_argument("--rtl", type=Path, default=ROOT / "build" / "rtl", help="folder with the Verilog")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "reports" / "synth.json")
    options = parser.parse_args()
    result = estimate(options.rtl, options.output)
    print(table(result))
    over = [kind for kind, goal in GOALS.items() if result["share"][kind] > goal]
    for kind in over:
        print(f"synth-estimate: {result['share'][kind]:.1%} of the card's {kind} is over the goal", file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
