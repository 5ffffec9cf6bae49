"""Where a pointer of the IR points: into a local array, at a stream, or at the memory behind an m_axi pointer."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from . import ir
from .errors import RuleError
from .graph import Graph, Node
from .ir import Instruction
from .process import Memory, Process


@dataclass(frozen=True)
class Pointer:
    """base + offset + sum of index * stride, in bytes; base is a parameter or a local array."""

    base: ir.Argument | Instruction
    offset: int
    terms: tuple[tuple[Node, int], ...]


@dataclass(frozen=True)
class Choice:
    """A pointer that depends on a condition: LLVM merges the same access to two streams into one like this."""

    condition: Node
    if_true: Pointer | Choice
    if_false: Pointer | Choice


def targets(graph: Graph, pointer: Pointer | Choice, predicate: Node) -> list[tuple[Pointer, Node]]:
    """What a pointer may point at, each with the condition under which it does."""
    if isinstance(pointer, Pointer):
        return [(pointer, predicate)]
    when = graph.and_(predicate, pointer.condition)
    otherwise = graph.and_(predicate, graph.not_(pointer.condition))
    return targets(graph, pointer.if_true, when) + targets(graph, pointer.if_false, otherwise)


def steps(i: Instruction, types: ir.Types) -> list[tuple[ir.Value, int]]:
    """The indices of a getelementptr, each with the bytes that it counts in."""
    kind = i.source_type
    found: list[tuple[ir.Value, int]] = []
    for number, operand in enumerate(i.operands[1:]):
        if number == 0:
            found.append((operand, types.bytes(kind)))
        elif array := re.fullmatch(r"\[(\d+) x (.*)\]", kind):
            kind = array[2]
            found.append((operand, types.bytes(kind)))
        else:
            assert isinstance(operand, ir.Constant)
            kind, offset = types.step(kind, operand.value)
            found.append((ir.Constant(64, 1, "i64"), offset))
    return found


@dataclass(frozen=True)
class _Array:
    name: str
    kind: ir.ArrayType
    banked: bool  # its outer index is always a constant: each inner array is a memory of its own

    @property
    def bank_bytes(self) -> int:
        return self.kind.element_bytes * self.kind.dimensions[-1]


class Arrays:
    """The local arrays of a function: one memory each, or one for each bank."""

    def __init__(self, function: ir.Function, types: ir.Types) -> None:
        self._arrays: dict[ir.Value, _Array] = {}
        used: set[str] = set()
        for alloca in function.instructions():
            if alloca.opcode != "alloca":
                continue
            kind = types.array(alloca.source_type)
            if not kind.dimensions:
                message = f"{alloca.name} is kept in memory: is its address taken?"
                raise RuleError("memory", message, alloca.location or function.location)
            name = re.sub(r"\W", "_", alloca.name or "array") + "_memory"
            while name in used:
                name += "_"
            used.add(name)
            self._arrays[alloca] = _Array(name, kind, len(kind.dimensions) > 1 and _is_banked(function, alloca, types))

    def locate(self, pointer: Pointer, width: int, process: Process, at: Instruction) -> tuple[Memory, Node]:
        """The memory that a pointer means, and the address in it. width: of what is read or written there."""
        array, graph = self._arrays[pointer.base], process.graph
        size, variable = array.kind.element_bytes, pointer.base.name
        if pointer.offset % size or any(stride % size for _, stride in pointer.terms) or width > 8 * size:
            message = f"{variable} is accessed in parts of its elements, or as another type"
            raise RuleError("memory", message, at.location or graph.location)
        depth, name, element = math.prod(array.kind.dimensions), array.name, pointer.offset // size
        if array.banked:
            assert not pointer.terms or pointer.offset % array.bank_bytes == 0
            assert all(stride < array.bank_bytes for _, stride in pointer.terms)
            depth = array.kind.dimensions[-1]
            bank, element = divmod(element, depth)
            name = f"{name}_{bank}"
        bits = max(1, (depth - 1).bit_length())
        address = graph.const(bits, element)
        for index, stride in pointer.terms:
            fitting = graph.bits(index, 0, bits) if index.width >= bits else graph.sext(index, bits)
            address = graph.add(graph.mul(fitting, graph.const(bits, stride // size)), address)
        memory = process.memories.setdefault(name, Memory(name, depth, location=at.location))
        if memory.width not in (0, width):
            message = f"{variable} is accessed as i{memory.width} and as i{width}"
            raise RuleError("memory", message, at.location or graph.location)
        memory.width = width
        return memory, address


def _is_banked(function: ir.Function, alloca: Instruction, types: ir.Types) -> bool:
    """Whether each access says by constants alone which inner array it means."""
    kind = types.array(alloca.source_type)
    bank_bytes = kind.element_bytes * kind.dimensions[-1]
    derived: dict[ir.Value, tuple[int, bool]] = {alloca: (0, False)}  # constant offset, whether an index varies
    pointers = [i for i in function.instructions() if i.opcode in ("getelementptr", "phi", "select")]
    for _ in pointers:  # until nothing is added: blocks need not be listed in order
        known = len(derived)
        for i in pointers:
            if i in derived:
                continue
            if i.opcode == "getelementptr" and i.operands[0] in derived:
                offset, varies = derived[i.operands[0]]
                for index, stride in steps(i, types):
                    if not isinstance(index, ir.Constant) and stride >= bank_bytes:
                        return False
                    if isinstance(index, ir.Constant):
                        offset += index.signed_value * stride
                    else:
                        varies = True
                derived[i] = (offset, varies)
            elif i.opcode != "getelementptr" and any(operand in derived for operand in i.operands):
                return False
        if len(derived) == known:
            break
    accesses = [i for i in function.instructions() if i.opcode in ("load", "store") and i.operands[-1] in derived]
    # m[1][i - 1] may be an address in bank 0.
    return not any(varies and offset % bank_bytes for offset, varies in (derived[i.operands[-1]] for i in accesses))
