"""Conditions that the first stage needs at once become registered flags, computed one turn ahead.

Whether the loop goes on, and whether it reads a stream, opens or holds the whole first stage. As long as such a
condition depends on counters only, its next value can be computed from the counters' next values: the flag is then one
more loop-carried state. Where that next value would take longer than a clock, the condition stays as it is.
"""

from __future__ import annotations

from .delays import delay
from .graph import Graph, Node
from .process import Loop, Process

_WORTH = 0.25  # ns of logic below which a flag gains nothing
_MOST_NODES = 200  # a condition that takes more is no flag


def add_flags(process: Process, budget: float) -> None:
    """budget: ns of logic that fit one stage."""
    for loop in process.loops:
        flags: dict[Node, Node] = {}
        loop.proceed = _flag(process.graph, loop, loop.proceed, flags, budget)
        for effect in loop.effects:
            if effect.kind == "read":
                effect.predicate = _flag(process.graph, loop, effect.predicate, flags, budget)


def _flag(graph: Graph, loop: Loop, condition: Node, flags: dict[Node, Node], budget: float) -> Node:
    if condition.op == "not":
        flag = _flag(graph, loop, condition.args[0], flags, budget)
        graph.loop = loop.index
        negated = graph.not_(flag)
        graph.loop = None
        return negated
    if condition in flags:
        return flags[condition]
    states = _states(condition, loop)
    if not states or _depth(condition, {}) < _WORTH or any(_states(s.args[1], loop) is None for s in states):
        return condition
    first = {state: state.args[0] for state in states}
    following = {state: state.args[1] for state in states}
    graph.name = f"{condition.name or 'flag'}_ahead"
    ahead = _Substitution(graph, loop.index, following)(condition)
    if _depth(ahead, {}) > budget:
        return condition
    graph.loop, graph.location = loop.index, condition.location
    flag = graph.state(1, graph.name)
    flag.args = [_Substitution(graph, None, first)(condition), ahead]
    graph.loop = None
    loop.states.append(flag)
    flags[condition] = flag
    return flag


def _states(node: Node, loop: Loop) -> list[Node] | None:
    """The states of the loop that a value depends on; None if it depends on what the turn reads, or is large."""
    found: list[Node] = []
    seen: set[Node] = set()
    work = [node]
    while work:
        node = work.pop()
        if node in seen or node.loop != loop.index:
            continue
        seen.add(node)
        if node.op in ("read", "load") or len(seen) > _MOST_NODES:
            return None
        if node.op == "state":
            found.append(node)
        else:
            work += node.args
    return found


def _depth(node: Node, known: dict[Node, float]) -> float:
    if node not in known:
        leaf = node.op in ("state", "const", "argument", "read", "load") or node.loop is None
        known[node] = 0.0 if leaf else delay(node) + max(_depth(arg, known) for arg in node.args)
    return known[node]


class _Substitution:
    """Rebuilds a value with some nodes replaced by others."""

    def __init__(self, graph: Graph, loop: int | None, replaced: dict[Node, Node]) -> None:
        self._graph, self._loop, self._done = graph, loop, dict(replaced)

    def __call__(self, node: Node) -> Node:
        if node not in self._done:
            self._done[node] = self._rebuilt(node)
        return self._done[node]

    def _rebuilt(self, node: Node) -> Node:
        if not node.args or node.op == "state":
            return node
        args = [self(arg) for arg in node.args]
        if all(new is old for new, old in zip(args, node.args, strict=True)):
            return node
        self._graph.loop, self._graph.name, self._graph.location = self._loop, node.name, node.location
        return self._graph.rebuild(node, args)
