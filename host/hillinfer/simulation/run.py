"""A trace, timed on a box."""

from __future__ import annotations

from hillinfer.errors import SettingError
from hillinfer.simulation.hardware import Hardware
from hillinfer.simulation.machine import Machine, Steps
from hillinfer.simulation.methods.base import Method
from hillinfer.simulation.shape import Shape
from hillinfer.simulation.simulated import Simulated
from hillinfer.simulation.trace import Trace


def simulate(hardware: Hardware, shape: Shape, method: Method, trace: Trace) -> Simulated:
    """How long each step of a trace takes by a method.

    trace   of as many layers as the shape has (``Trace.scaled`` makes it so)

    Raises MemoryBudgetError for a context beyond what the box holds, and SettingError where shape and trace, or box
    and method, do not fit.
    """
    if trace.layers != shape.layers:
        raise SettingError(f"the trace has {trace.layers} layers, {shape.name} {shape.layers}: scale it to the shape")
    at = Machine(hardware, shape, trace.sequences)
    method.check(at, trace.steps[-1][0].tokens)
    ends: list[float] = []

    def steps() -> Steps:
        for works in trace.steps:
            yield from at.catch_up()
            yield from method.step(at, works)
            ends.append(at.env.now)

    at.env.run(at.start(steps()))
    seconds = [end - start for start, end in zip([0.0, *ends], ends, strict=False)]
    return Simulated(seconds, at.flows.busy, at.flows.events)
