"""Boxes and work with round numbers, whose times can be worked out by hand."""

from __future__ import annotations

from typing import Any

from hillinfer.simulation.hardware import Hardware, Number, Software
from hillinfer.simulation.hardware.number import Positive
from hillinfer.simulation.shape import Shape

SHAPE = Shape("toy", 2, 4, 4, 64, 256, 512, 1000, 2, 1 << 20)
"""Rows of 1024 bytes."""


def box(*, gpu: bool = True, card: bool = True, **changes: float) -> Hardware:
    """A box on which nothing but what is changed takes time: rates of 10^18, no latencies."""
    fast, none = {"value": 1e18, "source": "test"}, {"value": 0, "source": "test"}
    drive: dict[str, Any] = {"capacity": fast, "read": fast, "write": fast, "iops": fast, "latency": none}
    tables: dict[str, Any] = {
        "name": "toy box",
        "about": "for tests",
        "cpu": dict.fromkeys(("score", "attend", "gather", "linear", "select"), fast) | {"cores": _number(2)},
        "dram": {"capacity": fast, "bandwidth": fast},
        "ssd": drive,
    }
    if gpu:
        tables["gpu"] = {"memory": fast, "bandwidth": fast, "flops": fast, "layer_overhead": none}
        tables["pcie"] = {"bandwidth": fast, "latency": none}
    if card:
        rates = dict.fromkeys(("memory", "memory_bandwidth", "scan", "p2p", "link"), fast)
        tables["smartssd"] = rates | {"cards": _number(1), "launch": none, "drive": drive}
    made = Hardware.model_validate(tables)
    return made.changed(**{name: Number(value, "test") for name, value in changes.items()})


def _number(value: float) -> dict[str, Any]:
    return {"value": value, "source": "test"}


def way(**changes: float) -> dict[str, Any]:
    """What a policy takes: nothing, but for what is changed."""
    usual = {"layer": 0.0, "token": 0.0, "row": 0.0, "attend": 1e18} | changes
    return {name: _number(value) for name, value in usual.items()}


def here(*, ways: dict[str, Any], whole: dict[str, Any] | None = None, **changes: float) -> Hardware:
    """A box whose processor computes, and whose programs take nothing but what ``ways`` say, and ``changes``."""
    plain = box(gpu=False, card=False)
    software = {name: _number(0) for name, field in Software.model_fields.items() if field.annotation is Number} | {
        name: _number(1e18) for name, field in Software.model_fields.items() if field.annotation is Positive
    }
    tables = plain.model_dump() | {"software": software | {"ways": ways, "whole": whole or way()}}
    made = Hardware.model_validate(tables)
    return made.changed(**{name: Number(value, "test") for name, value in changes.items()})
