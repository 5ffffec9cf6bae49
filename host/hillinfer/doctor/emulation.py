"""Whether XRT is told to emulate: then no card, driver or shell matters."""

from __future__ import annotations

from hillinfer.doctor.machine import Machine


def emulating(machine: Machine) -> bool:
    """Whether programs started like this one get XRT's hardware emulation."""
    return machine.environ.get("XCL_EMULATION_MODE") == "hw_emu"
