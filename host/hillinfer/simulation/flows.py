"""Work that shares resources: a discrete-event model of flows, fair where resources are contended.

A flow needs each of its resources for some seconds, were it alone: bytes divided by the resource's rate. It goes at the
speed of its slowest one. Where the demands on a resource add up to more than it has, all who use it are slowed to the
same share of their own full speed (max-min fairness), and what they leave free elsewhere goes to others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import simpy

from hillinfer.simulation.simulated import Event

_DONE = 1e-12
"""Of a flow, what counts as nothing left: rounding."""


@dataclass(eq=False)
class _Flow:
    """shares: of each resource's time that it takes at full speed; left: seconds at full speed."""

    shares: Mapping[str, float]
    left: float
    done: simpy.Event
    speed: float = 0.0


class Flows:
    """The flows of one environment.

    busy     seconds of work that each resource was given
    events   flows that are over, as a timeline
    """

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._flows: list[_Flow] = []
        self._since = 0.0
        self._changes = 0
        self.busy: dict[str, float] = {}
        self.events: list[Event] = []

    def start(
        self, name: str, demands: Mapping[str, float], *, least: float = 0.0, on: str | None = None
    ) -> simpy.Event:
        """An event for the end of a flow that starts now.

        demands   seconds of each resource
        least     seconds that it takes at the least, whatever is free
        on        the track of the timeline; None: that of the first resource
        """
        for resource, seconds in demands.items():
            self.busy[resource] = self.busy.get(resource, 0.0) + seconds
        alone, done = max([least, *demands.values()]), self._env.event()
        if alone <= 0:
            return done.succeed()
        track, start = on or next(iter(demands), name), self._env.now
        assert done.callbacks is not None
        done.callbacks.append(lambda _: self.events.append(Event(track, name, start, self._env.now)))
        self._advance()
        shares = {resource: seconds / alone for resource, seconds in demands.items() if seconds > 0}
        self._flows.append(_Flow(shares, alone, done))
        self._allot()
        return done

    def _advance(self) -> None:
        """What was done since the last change."""
        passed, self._since = self._env.now - self._since, self._env.now
        for flow in self._flows:
            flow.left -= flow.speed * passed

    def _allot(self) -> None:
        """Give every flow its speed, and wake when the first of them is over."""
        free: dict[str, float] = {}
        waiting = list(self._flows)
        for flow in waiting:
            free.update(dict.fromkeys(flow.shares, 1.0))
        level = 0.0
        while waiting:
            wanted: dict[str, float] = dict.fromkeys(free, 0.0)
            for flow in waiting:
                for resource, share in flow.shares.items():
                    wanted[resource] += share
            rise = min([1.0 - level, *(free[name] / need for name, need in wanted.items() if need > 0)])
            level += rise
            for name, need in wanted.items():
                free[name] -= rise * need
            full = {name for name, need in wanted.items() if need > 0 and free[name] <= _DONE}
            rest = []
            for flow in waiting:
                if level >= 1.0 - _DONE or not full.isdisjoint(flow.shares):
                    flow.speed = level
                else:
                    rest.append(flow)
            waiting = rest
        self._changes += 1
        if self._flows:
            next_end = min(max(0.0, flow.left) / flow.speed for flow in self._flows)
            self._env.timeout(next_end, self._changes).callbacks.append(self._wake)

    def _wake(self, event: simpy.Event) -> None:
        if event.value != self._changes:  # something began since then
            return
        self._advance()
        over = [flow for flow in self._flows if flow.left <= _DONE]
        self._flows = [flow for flow in self._flows if flow.left > _DONE]
        self._allot()
        for flow in over:
            flow.done.succeed()
