"""When each operation happens: stages of a pipeline with one turn per clock in loops, steps in the code before them.

Operations are placed as early as their arguments allow, and chained within a clock by the model in ``delays``. Those
that depend on each other from turn to turn form a group (a strongly connected component) which has to fit one stage.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from .delays import BLOCK_RAM, delay
from .graph import Node
from .process import Effect, Loop, Process

WIRING = ("concat", "replicate", "not", "bits")  # of settled values: there at all times, without a register

Item: TypeAlias = "Node | Effect"


def schedule_process(process: Process, budget: float) -> None:
    """Fills in stages, steps and times. budget: ns of logic per clock."""
    _find_needed(process)
    _schedule_setup(process, budget)
    schedulers = [_LoopScheduler(process, loop, budget) for loop in process.loops]
    for scheduler in schedulers:
        scheduler.prepare()
    for scheduler in schedulers:
        scheduler.run()


# ------------------------------------------------------------------------------------------------ what is needed


def _find_needed(process: Process) -> None:
    roots: list[Node] = [burst.length for burst in process.bursts.values()]
    for loop in process.loops:
        roots += [loop.guard, loop.proceed]
        for effect in loop.effects:
            if effect.kind != "load":
                roots += [node for node in (effect.predicate, effect.data) if node is not None]
            if effect.kind == "read" and effect.result is not None:
                roots.append(effect.result)
            if effect.kind == "store" and effect.address is not None:
                roots.append(effect.address)
    needed = _in_order(roots)
    process.setup = [node for node in needed if node.loop is None and node.op not in ("const", "argument")]
    alive = set(needed)
    for loop in process.loops:
        loop.nodes = [node for node in needed if node.loop == loop.index]
        loop.states = [state for state in loop.states if state in alive]
        loop.effects = [e for e in loop.effects if e.kind != "load" or e.result in alive]


def _in_order(roots: Iterable[Node]) -> list[Node]:
    """Everything the roots depend on, arguments first; states count as having none, but theirs are followed later."""
    done: dict[Node, None] = {}
    later = list(roots)
    while later:
        stack: list[tuple[Node, bool]] = [(later.pop(), False)]
        while stack:
            node, expanded = stack.pop()
            if node in done:
                continue
            if expanded or not node.args or node.op == "state":
                done[node] = None
                if node.op == "state":
                    later += node.args
            else:
                stack.append((node, True))
                stack += [(arg, False) for arg in node.args if arg not in done]
    return list(done)


# ------------------------------------------------------------------------------------------- code before the loops


def _schedule_setup(process: Process, budget: float) -> None:
    """Each node of the setup gets a segment (the loop before which it is computed) and a step in it."""
    steps = [0] * len(process.loops)
    for node in _in_order(process.setup):
        if node.loop is not None or node.op in ("const", "argument"):
            continue
        args = [(_segment(arg), arg) for arg in node.args]
        node.segment = max(segment for segment, _ in args)
        same = [arg for segment, arg in args if segment == node.segment and arg.loop is None]
        node.stage = max((arg.stage for arg in same), default=0)
        takes = delay(node)
        node.time = max((arg.time for arg in same if arg.stage == node.stage), default=0.0) + takes
        if node.time > budget and node.time > takes:
            node.stage += 1
            node.time = takes
        if node.op not in WIRING and node.segment < len(steps):
            steps[node.segment] = max(steps[node.segment], node.stage + 1)
    process.setup_steps = steps


def _segment(arg: Node) -> int:
    """What a loop computes is there before the next one."""
    return arg.segment if arg.loop is None else arg.loop + 1


# ---------------------------------------------------------------------------------------------------------- loops


@dataclass
class _LoopScheduler:
    process: Process
    loop: Loop
    budget: float
    needs: dict[Item, list[Item]] = field(default_factory=dict)  # values that have to be there
    together: dict[Item, list[Item]] = field(default_factory=dict)  # items that have to share a stage
    first: set[Item] = field(default_factory=set)  # what has to happen in stage 0
    groups: list[list[Item]] = field(default_factory=list)
    at: dict[Item, tuple[int, float]] = field(default_factory=dict)

    def prepare(self) -> None:
        """Finds what depends on what, and which memories cannot wait a clock for what is read."""
        self._collect()
        self.first = self._first_stage()
        self.groups = _components({item: self.needs[item] + self.together.get(item, []) for item in self.needs})
        for group in self.groups:
            for item in group:
                if isinstance(item, Node) and item.op == "load":
                    chased = any(need in group for need in self.needs[item])  # its address comes from what it gave
                    if chased or item in self.first:
                        self.process.memories[item.target].synchronous = False

    def run(self) -> None:
        for group in self.groups:
            self._place(group, any(item in self.first for item in group))
        for item, (stage, time) in self.at.items():
            item.stage = stage
            if isinstance(item, Node):
                item.time = time
        self.loop.stages = 1 + max(stage for stage, _ in self.at.values())
        self.loop.critical = max(time for _, time in self.at.values())

    def _collect(self) -> None:
        inside = set(self.loop.nodes)
        for node in self.loop.nodes:
            args = node.args[1:] if node.op == "state" else node.args
            self.needs[node] = [arg for arg in args if arg in inside]
        for node in self.loop.nodes:
            if node.op == "state" and node.args[1] in inside:
                self._share(node, node.args[1])
        for effect in self.loop.effects:
            if effect.kind in ("write", "store"):
                values = (effect.predicate, effect.data, effect.address if effect.kind == "store" else None)
                self.needs[effect] = [node for node in values if node is not None and node in inside]
            if effect.kind == "read" and effect.result is not None and effect.predicate in inside:
                self.needs[effect.result].append(effect.predicate)
        for kind in ("write", "store"):
            for target in {e.target: None for e in self.loop.effects if e.kind == kind}:
                items: list[Item] = [*self.loop.of(kind, target)]
                if kind == "store":
                    items += [e.result for e in self.loop.of("load", target) if e.result is not None]
                for first, second in pairwise(items):
                    self._share(first, second)

    def _share(self, first: Item, second: Item) -> None:
        self.together.setdefault(first, []).append(second)
        self.together.setdefault(second, []).append(first)

    def _first_stage(self) -> set[Item]:
        """What decides whether the loop goes on and what it reads: known in stage 0."""
        inside = set(self.loop.nodes)
        found: set[Item] = set()
        work: list[Item] = [node for node in [self.loop.proceed] if node in inside]
        work += [e.result for e in self.loop.effects if e.kind == "read" and e.result is not None]
        while work:
            item = work.pop()
            if item not in found:
                found.add(item)
                work += self.needs[item]
        return found

    def _place(self, group: list[Item], first: bool) -> None:
        members = set(group)
        outside = {need for item in group for need in self.needs[item] if need not in members}
        stage = max((self.at[need][0] for need in outside), default=0)
        # The address of a block RAM is needed a clock before the data comes.
        loads = [item for item in group if self._synchronous_load(item)]
        stage = max([stage, *(1 + self._latest(load) for load in loads)])
        assert not (first and stage)
        times = self._times(group, members, stage)
        late = max(times.values()) > self.budget
        if late and not first and any(self.at[need][0] == stage for need in outside):
            stage += 1
            times = self._times(group, members, stage)
        longest = max(times.values())
        if longest > self.budget:
            what = "a recurrence" if len(group) > 1 else "an operation"
            self.process.warnings.append(
                f"{self.loop.name}: {what} takes {longest:.2f} ns (estimate), more than {self.budget:.2f}"
            )
        for item in group:
            self.at[item] = (stage, times[item])

    def _latest(self, item: Item) -> int:
        return max((self.at[need][0] for need in self.needs[item]), default=0)

    def _synchronous_load(self, item: Item) -> bool:
        return isinstance(item, Node) and item.op == "load" and self.process.memories[item.target].synchronous

    def _times(self, group: list[Item], members: set[Item], stage: int) -> dict[Item, float]:
        """Arrival times if the group starts in this stage; a state's value is there at once."""
        times: dict[Item, float] = {item: 0.0 for item in group if isinstance(item, Node) and item.op == "state"}
        times.update((item, BLOCK_RAM) for item in group if self._synchronous_load(item))
        stack = list(group)
        while stack:
            item = stack[-1]
            if item in times:
                stack.pop()
                continue
            missing = [need for need in self.needs[item] if need in members and need not in times]
            if missing:
                stack += missing
                continue
            arrivals = [times[need] for need in self.needs[item] if need in members]
            arrivals += [
                self.at[need][1] for need in self.needs[item] if need not in members and self.at[need][0] == stage
            ]
            times[item] = max(arrivals, default=0.0) + (delay(item) if isinstance(item, Node) else 0.0)
            stack.pop()
        return times


def _components(edges: dict[Item, list[Item]]) -> list[list[Item]]:
    """Strongly connected components, those depended on first (Tarjan's algorithm, without recursion)."""
    index: dict[Item, int] = {}
    low: dict[Item, int] = {}
    on_stack: set[Item] = set()
    stack: list[Item] = []
    found: list[list[Item]] = []
    for root in edges:
        if root in index:
            continue
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            item, following = work[-1]
            advanced = False
            for need in following:
                if need not in index:
                    index[need] = low[need] = len(index)
                    stack.append(need)
                    on_stack.add(need)
                    work.append((need, iter(edges[need])))
                    advanced = True
                    break
                if need in on_stack:
                    low[item] = min(low[item], index[need])
            if advanced:
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[item])
            if low[item] == index[item]:
                group: list[Item] = []
                while not group or group[-1] is not item:
                    group.append(stack.pop())
                    on_stack.discard(group[-1])
                found.append(group)
    return found


def budget_of(clock_ns: float, share: float) -> float:
    """ns of logic that fit one clock period, to 0.01 ns."""
    return math.floor(clock_ns * share * 100) / 100
