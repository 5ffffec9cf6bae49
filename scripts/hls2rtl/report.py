"""What was built, for programs (report.json) and for people (report.txt)."""

from __future__ import annotations

from typing import Any

from . import __version__, passes
from .design import Design, Port
from .process import Process
from .verilog.control import error_bits, error_register, registers


def report(design: Design, source: str, clock: float, budget: float) -> dict[str, Any]:
    """version, top, clock; processes with their loops; fifos; registers; memories; warnings."""
    has_memory = any(port.kind == "memory" for port in design.ports)
    control = {name: {"offset": offset, "width": 32} for name, offset in _FIXED.items()}
    arguments = {each.name: {"offset": each.offset, "width": each.width} for each in registers(design)}
    if has_memory:
        error = error_register(design)
        arguments[error.name] = {"offset": error.offset, "width": error.width}
    return {
        "version": __version__,
        "tools": passes.version(),
        "source": source,
        "top": design.top,
        "clock_ns": clock,
        "logic_ns": budget,
        "protocol": "ap_ctrl_chain",
        "ports": [_port(port) for port in design.ports],
        "processes": [_process(process) for process in design.processes],
        "fifos": [
            {
                "name": channel.name,
                "width": channel.width,
                "declared": channel.declared,
                "depth": channel.depth,
                "writer": channel.writer,
                "reader": channel.reader,
            }
            for channel in design.channels
        ],
        "memories": [
            {
                "process": process.name,
                "name": memory.name,
                "depth": memory.depth,
                "width": memory.width,
                "kind": "block" if memory.synchronous else "distributed",
            }
            for process in design.processes
            for memory in process.memories.values()
        ],
        "registers": control | arguments,
        "axi_error_bits": error_bits(design),
        "warnings": [f"{process.name}: {text}" for process in design.processes for text in process.warnings],
    }


_FIXED = {"ap_ctrl": 0x00, "gie": 0x04, "ier": 0x08, "isr": 0x0C}


def _port(port: Port) -> dict[str, Any]:
    found: dict[str, Any] = {"name": port.name, "kind": port.kind, "width": port.width}
    if port.direction:
        found["direction"] = port.direction
    if port.bundle:
        found["bundle"] = port.bundle
    return found


def _process(process: Process) -> dict[str, Any]:
    loops = []
    for loop in process.loops:
        loops.append(
            {
                "name": loop.name,
                "ii": 1,
                "depth": loop.stages,
                "setup": process.setup_steps[loop.index],
                "trip": str(loop.location) if loop.location else "",
                "operations": len(loop.nodes),
                "longest_ns": round(loop.critical, 2),
            }
        )
    return {"name": process.name, "loops": loops}


def as_text(found: dict[str, Any]) -> str:
    """The report as tables of at most 100 columns."""
    lines = [
        f"{found['top']}: {found['source']}",
        f"clock {found['clock_ns']} ns, of which logic fills {found['logic_ns']} ns at most (estimates)",
        "",
        *_table(
            ["process", "loop", "II", "stages", "setup", "operations", "longest ns", "source"],
            [
                [
                    p["name"],
                    loop["name"],
                    loop["ii"],
                    loop["depth"],
                    loop["setup"],
                    loop["operations"],
                    loop["longest_ns"],
                    loop["trip"],
                ]
                for p in found["processes"]
                for loop in p["loops"]
            ],
        ),
        "",
        *_table(
            ["stream", "width", "declared", "depth", "from", "to"],
            [[f["name"], f["width"], f["declared"], f["depth"], f["writer"], f["reader"]] for f in found["fifos"]],
        ),
        "",
        *_table(
            ["process", "memory", "depth", "width", "kind"],
            [[m["process"], m["name"], m["depth"], m["width"], m["kind"]] for m in found["memories"]],
        ),
        "",
        *_table(
            ["register", "offset", "width"],
            [[name, f"0x{r['offset']:02x}", r["width"]] for name, r in found["registers"].items()],
        ),
    ]
    if found["warnings"]:
        lines += ["", "warnings", *(f"  {warning}" for warning in found["warnings"])]
    return "\n".join([*lines, ""])


def _table(head: list[str], rows: list[list[Any]]) -> list[str]:
    cells = [head, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
