"""Proves that a loop's accesses to an m_axi pointer are p[0], p[1], ... p[n-1], with n known before the loop."""

from __future__ import annotations

from typing import Literal

from .errors import Location, RuleError
from .graph import Graph, Node
from .process import Burst, Effect, Loop, Process

_LONGEST_CONSTANT = 1 << 16  # turns that are tried one by one


def find_bursts(process: Process) -> None:
    """Fills ``process.bursts``. Raises RuleError where the proof fails."""
    for loop in process.loops:
        for effect in loop.effects:
            if effect.kind in ("read", "write") and effect.address is not None:
                if effect.target in process.bursts:
                    raise _error(effect, "is accessed at a second place")
                process.bursts[effect.target] = _burst(process, loop, effect)


def _burst(process: Process, loop: Loop, effect: Effect) -> Burst:
    assert effect.address is not None
    width = (process.reads | process.writes)[effect.target]
    if width not in (8, 16, 32, 64, 128, 256, 512, 1024):
        raise _error(effect, f"has elements of {width} bits: AXI data is 8, 16, ... 1024 bits wide")
    if not effect.predicate.is_const(1):
        raise _error(effect, "is accessed in some turns of the loop only")
    kind: Literal["read", "write"] = "read" if effect.kind == "read" else "write"
    if effect.address.is_const(0) and loop.proceed.is_const(0):
        return Burst(effect.target, kind, width, _when(process, loop, process.graph.const(32, 1)), effect.location)
    index = _strip(effect.address)
    if not _counts_from_zero(index):
        raise _error(effect, "is indexed by something else than the loop's count from 0")
    length = _turns(process.graph, loop, index, effect.location)
    return Burst(effect.target, kind, width, _when(process, loop, length), effect.location)


def _when(process: Process, loop: Loop, length: Node) -> Node:
    """No beats if the loop is not entered."""
    return process.graph.select(loop.guard, length, process.graph.const(length.width, 0))


def _strip(index: Node) -> Node:
    """The count inside of extensions: concat of sign or zeros with the value itself."""
    while index.op == "concat" and index.args[-1].width >= 31:
        index = index.args[-1]
        if index.op == "bits" and index.value == 0:
            index = index.args[0]
    return index


def _counts_from_zero(index: Node) -> bool:
    if index.op != "state" or not index.args[0].is_const(0):
        return False
    following = index.args[1]
    return following.op == "add" and following.args[0] is index and following.args[1].is_const(1)


def _turns(graph: Graph, loop: Loop, index: Node, at: Location | None) -> Node:
    """How often the loop turns, given that it is entered, for a loop that goes on while index + 1 < n."""
    proceed = loop.proceed
    if proceed.op == "and" and any(arg.loop is None for arg in proceed.args):
        # LLVM takes what does not change out of the count: n = ok ? m : 0 becomes ok && i < m.
        fixed, rest = proceed.args if proceed.args[0].loop is None else proceed.args[::-1]
        length = _turns_while(graph, rest, index, at)
        return graph.select(fixed, length, graph.const(length.width, 1))
    return _turns_while(graph, proceed, index, at)


def _turns_while(graph: Graph, proceed: Node, index: Node, at: Location | None) -> Node:
    negated = proceed.op == "not"
    test = proceed.args[0] if negated else proceed
    if test.op in ("ult", "slt", "eq") and (test.op == "eq") == negated:
        counter, limit = (test.args[0], test.args[1]) if test.args[1].loop is None else (test.args[1], test.args[0])
        if counter is index.args[1] and limit.loop is None and (test.op == "eq" or counter is test.args[0]):
            return limit
    for turn in range(_LONGEST_CONSTANT):
        value = _evaluate(proceed, index, turn)
        if value is None:
            break
        if not value:
            return graph.const(32, turn + 1)
    raise RuleError("burst", "the count of this loop is not of the form i = 0; i < n; i++, which a burst needs", at)


def _evaluate(node: Node, index: Node, count: int) -> int | None:
    """The value of a condition on the index alone, in the turn number ``count``; None if it depends on more."""
    if node is index:
        return count & index.mask
    if node.op == "const":
        return node.value
    args = (
        [_evaluate(arg, index, count) for arg in node.args] if node.loop is not None and node.op != "state" else [None]
    )
    if any(arg is None for arg in args):
        return None
    known = [arg for arg in args if arg is not None]
    if node.op == "concat":
        value = 0
        for arg, bits in zip(node.args, known, strict=True):
            value = value << arg.width | bits
        return value
    if node.op in ("ult", "ule", "eq"):
        return int({"ult": known[0] < known[1], "ule": known[0] <= known[1], "eq": known[0] == known[1]}[node.op])
    if node.op in ("slt", "sle"):
        top = 1 << (node.args[0].width - 1)
        a, b = known[0] ^ top, known[1] ^ top
        return int(a < b if node.op == "slt" else a <= b)
    simple = {
        "not": lambda: ~known[0],
        "and": lambda: known[0] & known[1],
        "or": lambda: known[0] | known[1],
        "add": lambda: known[0] + known[1],
        "bits": lambda: known[0] >> node.value,
    }
    return simple[node.op]() & node.mask if node.op in simple else None


def _error(effect: Effect, problem: str) -> RuleError:
    return RuleError("burst", f"{effect.target} {problem}", effect.location)
