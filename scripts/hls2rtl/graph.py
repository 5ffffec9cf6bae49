"""The operations of one process: a graph of pure nodes over integers, with reads of streams, arrays and state.

Nodes are made through ``Graph``, which folds constants and shares equal nodes. A node belongs to the loop whose turns
change its value, or to none: then it is computed once, before the loop that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from .errors import Location

Op = Literal[
    "const",
    "argument",
    "add",
    "sub",
    "mul",
    "and",
    "or",
    "xor",
    "not",
    "shl",
    "lshr",
    "ashr",
    "eq",
    "ult",
    "ule",
    "slt",
    "sle",
    "select",
    "concat",
    "replicate",
    "bits",
    "state",
    "read",
    "load",
]


@dataclass(eq=False, slots=True)
class Node:
    """One operation. args of: select are condition, if true, if false; concat most significant first; load the address;
    replicate the bit; mul factors of any width, extended as ``value`` says.

    value: of a const its bits; of bits the lowest bit taken; of mul which factors are signed (1, 2 or both).
    target: of a read the stream, of a load the array. A state's args are its value before the loop and after each turn.
    """

    op: Op
    width: int
    args: list[Node] = field(default_factory=list)
    value: int = 0
    target: str = ""
    loop: int | None = None
    name: str = ""
    location: Location | None = None
    ones: int = -1  # bits that can be other than 0
    # The schedule: in a loop a stage of its pipeline; outside a step of the setup before loop number `segment`.
    segment: int = 0
    stage: int = 0
    time: float = 0.0  # ns after the clock edge at which the value is there

    @property
    def mask(self) -> int:
        return (1 << self.width) - 1

    def is_const(self, value: int | None = None) -> bool:
        return self.op == "const" and (value is None or self.value == value & self.mask)

    @property
    def signed_value(self) -> int:
        return self.value - (1 << self.width) if self.value >> (self.width - 1) else self.value


class Graph:
    """Makes nodes. ``loop`` and ``location`` are where the code now being read stands."""

    def __init__(self) -> None:
        self.loop: int | None = None
        self.location: Location | None = None
        self.name = ""
        self._shared: dict[tuple[object, ...], Node] = {}

    # ------------------------------------------------------------------------------------------------- leaves

    def const(self, width: int, value: int) -> Node:
        value &= (1 << width) - 1
        return self._make("const", width, [], value)

    @property
    def true(self) -> Node:
        return self.const(1, 1)

    @property
    def false(self) -> Node:
        return self.const(1, 0)

    def argument(self, name: str, width: int) -> Node:
        return self._make("argument", width, [], 0, name)

    def state(self, width: int, name: str) -> Node:
        return Node("state", width, [], loop=self.loop, name=name, location=self.location, ones=(1 << width) - 1)

    def read(self, width: int, stream: str) -> Node:
        return Node("read", width, [], 0, stream, self.loop, stream, self.location, (1 << width) - 1)

    def load(self, width: int, memory: str, address: Node) -> Node:
        return Node("load", width, [address], 0, memory, self.loop, memory, self.location, (1 << width) - 1)

    # ------------------------------------------------------------------------------------------------- logic

    def not_(self, a: Node) -> Node:
        if a.is_const():
            return self.const(a.width, ~a.value)
        if a.op == "not":
            return a.args[0]
        return self._make("not", a.width, [a])

    def and_(self, a: Node, b: Node) -> Node:
        a, b = self._constant_last(a, b)
        if b.is_const(0):
            return b
        if b.is_const(b.mask) or a is b:
            return a
        if a.is_const():
            return self.const(a.width, a.value & b.value)
        if a.width == 1 and (self.not_(a) is b):
            return self.false
        if b.is_const() and a.op == "and" and a.args[1].is_const():
            return self.and_(a.args[0], self.const(a.width, a.args[1].value & b.value))
        if a.ones & b.ones == 0:
            return self.const(a.width, 0)
        if b.is_const() and len(runs := _runs(b.value, b.width)) <= _MOST_PARTS:
            return self.concat([self.bits(a, low, n) if one else self.const(n, 0) for one, low, n in runs])
        return self._make("and", a.width, [a, b])

    def or_(self, a: Node, b: Node) -> Node:
        a, b = self._constant_last(a, b)
        if b.is_const(0) or a is b:
            return a
        if b.is_const(b.mask):
            return b
        if a.is_const():
            return self.const(a.width, a.value | b.value)
        if a.width == 1 and (self.not_(a) is b):
            return self.true
        if a.ones & b.ones == 0 and len(runs := _runs(b.ones, b.width)) <= _MOST_PARTS:
            return self.concat([self.bits(b if from_b else a, low, n) for from_b, low, n in runs])
        return self._make("or", a.width, [a, b])

    def xor(self, a: Node, b: Node) -> Node:
        a, b = self._constant_last(a, b)
        if b.is_const(0):
            return a
        if b.is_const(b.mask):
            return self.not_(a)
        if a.is_const():
            return self.const(a.width, a.value ^ b.value)
        return self._make("xor", a.width, [a, b])

    def any(self, nodes: Sequence[Node]) -> Node:
        result = self.false
        for node in nodes:
            result = self.or_(result, node)
        return result

    def select(self, condition: Node, if_true: Node, if_false: Node) -> Node:
        if condition.is_const():
            return if_true if condition.value else if_false
        if if_true is if_false:
            return if_true
        if condition.op == "not":
            return self.select(condition.args[0], if_false, if_true)
        if if_true.width == 1:
            if if_true.is_const(1):
                return self.or_(condition, if_false)
            if if_true.is_const(0):
                return self.and_(self.not_(condition), if_false)
            if if_false.is_const(0):
                return self.and_(condition, if_true)
            if if_false.is_const(1):
                return self.or_(self.not_(condition), if_true)
        return self._make("select", if_true.width, [condition, if_true, if_false])

    # --------------------------------------------------------------------------------------------- arithmetic

    def add(self, a: Node, b: Node) -> Node:
        a, b = self._constant_last(a, b)
        if b.is_const(0):
            return a
        if b.is_const() and a.is_const():
            return self.const(a.width, a.value + b.value)
        if b.is_const() and a.op == "add" and a.args[1].is_const():
            return self.add(a.args[0], self.const(a.width, a.args[1].value + b.value))
        if a.ones & b.ones == 0:
            return self.or_(a, b)
        return self._make("add", a.width, [a, b])

    def sub(self, a: Node, b: Node) -> Node:
        if b.is_const():
            return self.add(a, self.const(a.width, -b.value))
        return self._make("sub", a.width, [a, b])

    def mul(self, a: Node, b: Node) -> Node:
        a, b = self._constant_last(a, b)
        if b.is_const():
            if a.is_const():
                return self.const(a.width, a.value * b.value)
            if b.value == 0:
                return b
            if b.value & (b.value - 1) == 0:
                return self.shift("shl", a, self.const(a.width, b.value.bit_length() - 1))
        return self._product(a.width, self._narrow(a), self._narrow(b))

    def _product(self, width: int, a: tuple[Node, bool], b: tuple[Node, bool]) -> Node:
        """A product of factors with or without sign. One too wide for a multiplier is taken apart, so that the schedule
        can spread the work."""
        (x, x_signed), (y, y_signed) = sorted((a, b), key=lambda factor: -factor[0].width)
        if y.width + (not y_signed) <= 18 and x.width + (not x_signed) <= 27:  # a DSP slice: 27 by 18 bits, signed
            return self._make("mul", width, [x, y], x_signed | y_signed << 1)
        low = self._product(width, (self.bits(x, 0, _SLICE), False), (y, y_signed))
        high = self._product(width, (self.bits(x, _SLICE, x.width - _SLICE), x_signed), (y, y_signed))
        return self.add(self.shift("shl", high, self.const(width, _SLICE)), low)

    def _narrow(self, a: Node) -> tuple[Node, bool]:
        """A factor without its extension, and whether that extends the sign."""
        if a.op == "concat" and a.args[0].op == "replicate":
            rest = self.bits(a, 0, a.width - a.args[0].width)
            if self.bits(rest, rest.width - 1, 1) is a.args[0].args[0]:
                return rest, True
        width = max(1, a.ones.bit_length())
        return self.bits(a, 0, width), width == a.width

    def shift(self, op: Literal["shl", "lshr", "ashr"], a: Node, n: Node) -> Node:
        """A shift by a constant is wiring."""
        if not n.is_const():
            return self._make(op, a.width, [a, n])
        by, width = min(n.value, a.width), a.width
        if by == 0:
            return a
        if op == "shl":
            return (
                self.const(width, 0) if by == width else self.concat([self.bits(a, 0, width - by), self.const(by, 0)])
            )
        if op == "lshr":
            return self.const(width, 0) if by == width else self.zext(self.bits(a, by, width - by), width)
        by = min(by, width - 1)
        return self.sext(self.bits(a, by, width - by), width)

    def compare(self, predicate: str, a: Node, b: Node) -> Node:
        """predicate: LLVM's eq, ne, ult, ule, ugt, uge, slt, sle, sgt, sge."""
        swapped = {"ugt": "ult", "uge": "ule", "sgt": "slt", "sge": "sle"}
        if predicate in swapped:
            return self.compare(swapped[predicate], b, a)
        if predicate == "ne":
            return self.not_(self.compare("eq", a, b))
        if a.is_const() and b.is_const():
            return self.const(1, int(_COMPARE[predicate](a, b)))
        if a is b:
            return self.const(1, int(predicate in ("eq", "ule", "sle")))
        found = self._sign_test(predicate, a, b) or self._bit_test(predicate, a, b)
        return found or self._compare(predicate, *self._without_zeros(predicate, a, b))

    def _without_zeros(self, predicate: str, a: Node, b: Node) -> tuple[Node, Node]:
        """Both operands less the bits that are 0 in both, if the comparison does not look at signs."""
        used = a.ones | b.ones
        if predicate not in ("eq", "ult", "ule") or used == 0:
            return a, b
        low = (used & -used).bit_length() - 1
        width = used.bit_length() - low
        return self.bits(a, low, width), self.bits(b, low, width)

    def _compare(self, predicate: str, a: Node, b: Node) -> Node:
        if predicate == "eq":
            a, b = self._constant_last(a, b)
            return self._make("eq", 1, [a, b])
        if predicate == "ult":
            return self._make("ult", 1, [a, b])
        if predicate == "ule":
            return self._make("ule", 1, [a, b])
        return self._make("slt" if predicate == "slt" else "sle", 1, [a, b])

    def _sign_test(self, predicate: str, a: Node, b: Node) -> Node | None:
        """Comparisons that only look at the top bit."""
        top = 1 << (a.width - 1)
        if (predicate == "slt" and b.is_const(0)) or (predicate == "ule" and a.is_const(top)):
            x, negative = (a, True) if predicate == "slt" else (b, True)
        elif (predicate == "slt" and a.is_const(-1)) or (predicate == "ult" and b.is_const(top)):
            x, negative = (b, False) if predicate == "slt" else (a, False)
        elif predicate == "sle" and a.is_const(0):
            x, negative = b, False
        elif (predicate == "sle" and b.is_const(-1)) or (predicate == "ult" and a.is_const(top - 1)):
            x, negative = (a, True) if predicate == "sle" else (b, True)
        elif predicate == "ule" and b.is_const(top - 1):
            x, negative = a, False
        else:
            return None
        bit = self.bits(x, x.width - 1, 1)
        return bit if negative else self.not_(bit)

    def _bit_test(self, predicate: str, a: Node, b: Node) -> Node | None:
        """x == constant where all of x but one bit is known to be 0."""
        a, b = self._constant_last(a, b)
        if predicate != "eq" or not b.is_const() or a.is_const():
            return None
        if b.value & ~a.ones:
            return self.false
        if a.ones and a.ones & (a.ones - 1) == 0:
            bit = self.bits(a, a.ones.bit_length() - 1, 1)
            return bit if b.value else self.not_(bit)
        return None

    # ------------------------------------------------------------------------------------------------- wiring

    def bits(self, a: Node, low: int, width: int) -> Node:
        """Bits low .. low + width - 1 of a."""
        if low == 0 and width == a.width:
            return a
        if a.is_const():
            return self.const(width, a.value >> low)
        if (a.ones >> low) & ((1 << width) - 1) == 0:
            return self.const(width, 0)
        if a.op == "bits":
            return self.bits(a.args[0], a.value + low, width)
        if a.op == "replicate":
            return self.replicate(a.args[0], width)
        if a.op == "not":
            return self.not_(self.bits(a.args[0], low, width))
        if a.op == "concat":
            return self._bits_of_concat(a, low, width)
        if a.op in ("and", "or", "xor", "select") and (width == 1 or any(x.is_const() for x in a.args)):
            return self._bits_of_logic(a, low, width)
        return self._make("bits", width, [a], low)

    def _bits_of_concat(self, a: Node, low: int, width: int) -> Node:
        parts: list[Node] = []
        position = 0
        for part in reversed(a.args):
            start, stop = max(low, position), min(low + width, position + part.width)
            if start < stop:
                parts.append(self.bits(part, start - position, stop - start))
            position += part.width
        return self.concat(parts[::-1])

    def _bits_of_logic(self, a: Node, low: int, width: int) -> Node:
        x = self.bits(a.args[-2], low, width)
        y = self.bits(a.args[-1], low, width)
        if a.op == "select":
            return self.select(a.args[0], x, y)
        return {"and": self.and_, "or": self.or_, "xor": self.xor}[a.op](x, y)

    def concat(self, parts: Sequence[Node]) -> Node:
        """Most significant part first; neighbours that belong together are joined."""
        joined: list[Node] = []
        for part in (inner for outer in parts for inner in (outer.args if outer.op == "concat" else [outer])):
            last = joined[-1] if joined else None
            if last is not None and last.is_const() and part.is_const():
                joined[-1] = self.const(last.width + part.width, last.value << part.width | part.value)
            elif last is not None and _continues(last, part):
                whole = part.args[0] if part.op == "bits" else part
                joined[-1] = self.bits(whole, part.value if part.op == "bits" else 0, last.width + part.width)
            elif last is not None and last.op == part.op == "replicate" and last.args[0] is part.args[0]:
                joined[-1] = self.replicate(part.args[0], last.width + part.width)
            else:
                joined.append(part)
        if len(joined) == 1:
            return joined[0]
        return self._make("concat", sum(part.width for part in joined), joined)

    def zext(self, a: Node, width: int) -> Node:
        return a if width == a.width else self.concat([self.const(width - a.width, 0), a])

    def sext(self, a: Node, width: int) -> Node:
        if width == a.width:
            return a
        return self.concat([self.replicate(self.bits(a, a.width - 1, 1), width - a.width), a])

    def replicate(self, bit: Node, width: int) -> Node:
        if bit.is_const():
            return self.const(width, -bit.value)
        return bit if width == 1 else self._make("replicate", width, [bit])

    # --------------------------------------------------------------------------------------------------------

    def rebuild(self, node: Node, args: list[Node]) -> Node:
        """The same operation on other arguments of the same widths."""
        match node.op:
            case "add":
                return self.add(args[0], args[1])
            case "sub":
                return self.sub(args[0], args[1])
            case "mul":
                extend = [self.sext if node.value >> n & 1 else self.zext for n in (0, 1)]
                return self.mul(extend[0](args[0], node.width), extend[1](args[1], node.width))
            case "and":
                return self.and_(args[0], args[1])
            case "or":
                return self.or_(args[0], args[1])
            case "xor":
                return self.xor(args[0], args[1])
            case "not":
                return self.not_(args[0])
            case "shl" | "lshr" | "ashr":
                return self.shift(node.op, args[0], args[1])
            case "eq" | "ult" | "ule" | "slt" | "sle":
                return self.compare(node.op, args[0], args[1])
            case "select":
                return self.select(args[0], args[1], args[2])
            case "concat":
                return self.concat(args)
            case "replicate":
                return self.replicate(args[0], node.width)
            case "bits":
                return self.bits(args[0], node.value, node.width)
        raise AssertionError(node.op)

    def _constant_last(self, a: Node, b: Node) -> tuple[Node, Node]:
        return (b, a) if a.is_const() and not b.is_const() else (a, b)

    def _make(self, op: Op, width: int, args: list[Node], value: int = 0, target: str = "") -> Node:
        loop = self.loop if any(arg.loop == self.loop for arg in args) else None
        key = (op, width, value, target, loop, *map(id, args))
        if key not in self._shared:
            node = Node(op, width, args, value, target, loop, self.name, self.location)
            node.ones = _ones(node)
            self._shared[key] = node
        return self._shared[key]


_SLICE = 17
_MOST_PARTS = 8  # a mask of more runs stays a mask

_COMPARE = {
    "eq": lambda a, b: a.value == b.value,
    "ult": lambda a, b: a.value < b.value,
    "ule": lambda a, b: a.value <= b.value,
    "slt": lambda a, b: a.signed_value < b.signed_value,
    "sle": lambda a, b: a.signed_value <= b.signed_value,
}


def _runs(mask: int, width: int) -> list[tuple[bool, int, int]]:
    """The mask as runs of equal bits, most significant first: (bit, lowest position, length)."""
    runs: list[tuple[bool, int, int]] = []
    low = 0
    while low < width:
        bit = bool(mask >> low & 1)
        rest = (mask >> low) ^ (-1 if bit else 0)
        length = min(width - low, ((rest & -rest).bit_length() - 1) if rest else width - low)
        runs.append((bit, low, length))
        low += length
    return runs[::-1]


def _continues(high: Node, low: Node) -> bool:
    """Whether two neighbouring parts are neighbouring bits of one value."""
    if high.op != "bits":
        return False
    if low.op == "bits":
        return high.args[0] is low.args[0] and high.value == low.value + low.width
    return high.args[0] is low and high.value == low.width


def _ones(node: Node) -> int:
    args = [arg.ones for arg in node.args]
    if node.op == "const":
        return node.value
    if node.op == "and":
        return args[0] & args[1]
    if node.op in ("or", "xor"):
        return args[0] | args[1]
    if node.op == "select":
        return args[1] | args[2]
    if node.op == "bits":
        return (args[0] >> node.value) & node.mask
    if node.op == "concat":
        bits = 0
        for arg in node.args:
            bits = bits << arg.width | arg.ones
        return bits
    if node.op == "add" and args[0] & args[1] == 0:
        return args[0] | args[1]
    if node.op == "add":
        return node.mask & ((1 << (max(args).bit_length() + 1)) - 1)
    if node.op == "mul" and node.value == 0:
        return node.mask & ((1 << (args[0].bit_length() + args[1].bit_length())) - 1)
    if node.op == "lshr":
        return (1 << args[0].bit_length()) - 1
    return node.mask
