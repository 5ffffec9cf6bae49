"""One function of the IR -> a Process: control flow becomes predicates and selects, memory accesses become effects."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Literal

from . import ir
from .errors import RuleError
from .graph import Graph, Node
from .intrinsics import NO_HARDWARE, intrinsic
from .ir import Block, Instruction
from .pointers import Arrays, Choice, Pointer, steps, targets
from .pragmas import Pragmas
from .process import Effect, EffectKind, Loop, Process
from .regions import LoopBlocks, Region, Regions, Unit, find_regions


def build_process(function: ir.Function, types: ir.Types, lines: ir.DebugLines, pragmas: Pragmas) -> Process:
    """Raises RuleError where the function leaves the language."""
    return _Builder(function, types, lines, pragmas).build()


def add_unused(process: Process, uses: dict[str, dict[Literal["read", "write"], int]]) -> None:
    """Gives the process ports for streams that the source uses in code which, as it turned out, never runs."""
    for parameter, directions in uses.items():
        for direction, width in directions.items():
            ports = process.reads if direction == "read" else process.writes
            if parameter not in ports:
                ports[parameter] = process.widths[parameter] = width


class _Builder:
    def __init__(self, function: ir.Function, types: ir.Types, lines: ir.DebugLines, pragmas: Pragmas) -> None:
        self.function, self.types, self.labels = function, types, pragmas.loop_labels
        self.regions: Regions = find_regions(function, lines, pragmas.pipelined)
        self.graph = Graph()
        self.process = Process(function.short_name, function.name, function.location, self.graph)
        self.values: dict[ir.Value, Node] = {}
        self.pointers: dict[ir.Value, Pointer | Choice] = {}
        self.edges: dict[tuple[Block, Block], Node] = {}  # when control goes this way, given that the region is entered
        self.reached: dict[Unit, Node] = {}
        self.loop_of = {block: loop for loop in self.regions.loops for block in loop.blocks}
        self.loops: dict[LoopBlocks, Loop] = {}
        self.loop: Loop | None = None
        self.places: dict[Effect, tuple[Unit, Instruction]] = {}
        self.arrays = Arrays(function, types)

    def build(self) -> Process:
        for number, argument in enumerate(self.function.arguments):
            name = argument.name or f"parameter{number}"
            argument.name = name
            self.process.parameters.append(name)
            if argument.width:
                self.process.scalars[name] = argument.width
                self.values[argument] = self.graph.argument(name, argument.width)
            else:
                self.pointers[argument] = Pointer(argument, 0, ())
        outer = self.regions.outer
        for unit in outer.units:
            self.reached[unit] = self._reached(unit, outer)
            if isinstance(unit, LoopBlocks):
                self._loop(unit)
            else:
                self._block(unit, outer)
        self.process.loops.sort(key=lambda loop: loop.index)
        self._trim()
        return self.process

    # ------------------------------------------------------------------------------------------- control flow

    def _reached(self, unit: Unit, region: Region) -> Node:
        """The predicate of a node, given that its region is entered."""
        if unit is region.entry:
            return self.graph.true
        guarantor = region.guaranteed_by[unit]
        if guarantor is not unit:
            return self.reached[guarantor]
        block = unit.header if isinstance(unit, LoopBlocks) else unit
        inside = set(unit.blocks) if isinstance(unit, LoopBlocks) else set()
        return self.graph.any([self._edge(source, block) for source in block.predecessors if source not in inside])

    def _edge(self, source: Block, target: Block) -> Node:
        """When control goes this way. Seen from outside, a loop that was entered is left, as its last turn says."""
        if self.loop is not None or source not in self.loop_of:
            return self.edges[source, target]
        blocks = self.loop_of[source]
        entered = self.reached[blocks]
        if len({to for _, to in blocks.exits}) == 1:
            return entered
        self.graph.loop = self.loops[blocks].index
        this_way = self.graph.any([self.edges[edge] for edge in blocks.exits if edge[1] is target])
        self.graph.loop = None
        return self.graph.and_(entered, this_way)

    def _leave(self, block: Block, reached: Node) -> None:
        """Notes the predicates of a block's outgoing edges."""
        targets = block.successors
        if len(targets) == 2 and targets[0] is not targets[1]:
            condition = self._value(block.terminator.operands[0])
            self.edges[block, targets[0]] = self.graph.and_(reached, condition)
            self.edges[block, targets[1]] = self.graph.and_(reached, self.graph.not_(condition))
        elif targets:
            self.edges[block, targets[0]] = reached

    def _block(self, block: Block, region: Region) -> None:
        for instruction in block.instructions:
            self.graph.location = instruction.location or self.graph.location
            self.graph.name = instruction.variable
            if instruction.opcode == "phi":
                if not (self.loop and block is region.entry):
                    self._phi(instruction)
            elif instruction.opcode not in ("br", "condbr", "uncondbr", "ret"):
                self._instruction(instruction)
        if block.terminator.opcode not in ("br", "condbr", "uncondbr", "ret"):
            raise self._unsupported(block.terminator)
        self._leave(block, self.reached[block])

    def _loop(self, blocks: LoopBlocks) -> None:
        index = len(self.loops)
        name = self.labels.get(blocks.location) if blocks.location else None
        false = self.graph.false
        loop = Loop(index, name or f"loop{index}", blocks.location, self.reached[blocks], false)
        self.loops[blocks] = self.loop = loop
        self.process.loops.append(loop)
        header = blocks.header
        outside = [block for block in header.predecessors if block not in set(blocks.blocks)]
        phis = [instruction for instruction in header.instructions if instruction.opcode == "phi"]
        for phi in phis:
            if phi.width is None:
                raise RuleError("pointer", "a pointer that moves from turn to turn", phi.location or blocks.location)
        firsts = [self._join(phi, outside, lambda source: self._edge(source, header)) for phi in phis]

        self.graph.loop = index
        for phi in phis:
            self.graph.location, self.graph.name = phi.location or blocks.location, phi.variable
            assert phi.width is not None
            self.values[phi] = self.graph.state(phi.width, phi.variable)
        region = self.regions.bodies[blocks]
        for unit in region.units:
            assert isinstance(unit, Block)
            self.reached[unit] = self._reached(unit, region)
            self._block(unit, region)
        latches = [block for block in header.predecessors if block in set(blocks.blocks)]
        loop.proceed = self.graph.any([self.edges[latch, header] for latch in latches])
        for phi, first in zip(phis, firsts, strict=True):
            following = self._join(phi, latches, lambda source: self.edges[source, header])
            state = self.values[phi]
            state.args = [first, following]
            loop.states.append(state)
        self._check_streams(loop, region)
        self.graph.loop = None
        self.loop = None

    def _join(self, phi: Instruction, sources: Sequence[Block], edge: Callable[[Block], Node]) -> Node:
        """The value of a phi, given that control comes from one of the sources."""
        values = {block: value for block, value in zip(phi.incoming, phi.operands, strict=True) if block in sources}
        result: Node | None = None
        for block, value in values.items():
            node = self._value(value)
            result = node if result is None else self.graph.select(edge(block), node, result)
        assert result is not None
        return result

    def _phi(self, phi: Instruction) -> None:
        block = phi.block
        groups: dict[Unit, list[Block]] = {}
        for source in phi.incoming:
            unit: Unit = source if self.loop else self.loop_of.get(source, source)
            groups.setdefault(unit, []).append(source)
        if phi.width is None:
            self._pointer_phi(phi)
            return
        result: Node | None = None
        for unit, sources in groups.items():
            if isinstance(unit, LoopBlocks):
                loop = self.loops[unit]
                self.graph.loop = loop.index
                node = self._join(phi, sources, lambda source: self.edges[source, block])
                self.graph.loop = None
            else:
                node = self._join(phi, sources, lambda source: self.edges[source, block])
            when = self._edge(sources[0], block)
            result = node if result is None else self.graph.select(when, node, result)
        assert result is not None
        self.values[phi] = result

    def _pointer_phi(self, phi: Instruction) -> None:
        result: Pointer | Choice | None = None
        for source, value in zip(phi.incoming, phi.operands, strict=True):
            pointer = self._pointer(value, phi)
            result = pointer if result is None else Choice(self._edge(source, phi.block), pointer, result)
        assert result is not None
        self.pointers[phi] = result

    # ------------------------------------------------------------------------------------------------- values

    def _value(self, value: ir.Value) -> Node:
        if isinstance(value, ir.Constant) and value.width is not None:
            return self.graph.const(value.width, value.value)
        if isinstance(value, ir.Global):
            raise RuleError("global", f"the variable {value.name} is global or static", self.graph.location)
        if value not in self.values:
            raise RuleError("pointer", "a pointer is used as a number, or kept in a variable", self.graph.location)
        return self.values[value]

    def _instruction(self, i: Instruction) -> None:
        if i.opcode in _BINARY:
            self.values[i] = self._binary(i, self._value(i.operands[0]), self._value(i.operands[1]))
        elif i.opcode == "icmp":
            self.values[i] = self.graph.compare(i.predicate, self._value(i.operands[0]), self._value(i.operands[1]))
        elif i.opcode == "select" and i.width is None:
            condition, if_true, if_false = i.operands
            choice = Choice(self._value(condition), self._pointer(if_true, i), self._pointer(if_false, i))
            self.pointers[i] = choice
        elif i.opcode == "select":
            self.values[i] = self.graph.select(*(self._value(operand) for operand in i.operands))
        elif i.opcode in ("zext", "sext") and i.width:
            extend = self.graph.zext if i.opcode == "zext" else self.graph.sext
            self.values[i] = extend(self._value(i.operands[0]), i.width)
        elif i.opcode == "trunc" and i.width:
            self.values[i] = self.graph.bits(self._value(i.operands[0]), 0, i.width)
        elif i.opcode == "freeze":
            self.values[i] = self._value(i.operands[0])
        elif i.opcode == "alloca":
            self.pointers[i] = Pointer(i, 0, ())
        elif i.opcode == "getelementptr":
            self.pointers[i] = self._element(i)
        elif i.opcode == "load":
            self.values[i] = self._load(i)
        elif i.opcode == "store":
            self._store(i)
        elif i.opcode == "call":
            self._call(i)
        else:
            raise self._unsupported(i)

    def _binary(self, i: Instruction, a: Node, b: Node) -> Node:
        match i.opcode:
            case "add":
                return self.graph.add(a, b)
            case "sub":
                return self.graph.sub(a, b)
            case "mul":
                return self.graph.mul(a, b)
            case "and":
                return self.graph.and_(a, b)
            case "or":
                return self.graph.or_(a, b)
            case "xor":
                return self.graph.xor(a, b)
            case "shl" | "lshr" | "ashr":
                return self.graph.shift(i.opcode, a, b)
        raise self._error("division", "division takes a divider of its own: shift, multiply, or precompute", i)

    def _call(self, i: Instruction) -> None:
        name = i.callee
        if name.startswith(NO_HARDWARE):
            return
        if name.startswith(("llvm.memset.", "llvm.memcpy.", "llvm.memmove.")):
            raise self._error("memory", "an array is cleared or copied as a whole: do it in a pipelined loop", i)
        known = re.match(r"llvm\.([\w.]+)\.i\d+$", name)
        args = [self._value(operand) for operand in i.operands[:-1]] if known and i.width else []
        result = intrinsic(self.graph, known[1], args) if known and args else None
        if result is None:
            raise self._unsupported(i)
        self.values[i] = result

    # ----------------------------------------------------------------------------------------------- pointers

    def _pointer(self, value: ir.Value, at: Instruction) -> Pointer | Choice:
        if isinstance(value, ir.Global):
            what = "constant table" if value.constant else "global or static variable"
            raise self._error("global", f"{ir.variable_name(value.name)} is a {what}", at)
        if value not in self.pointers:
            raise self._error("pointer", "a pointer is computed, cast or null", at)
        return self.pointers[value]

    def _element(self, i: Instruction) -> Pointer:
        base = self._pointer(i.operands[0], i)
        if isinstance(base, Choice):
            raise self._error("pointer", "an index into one of two arrays", i)
        offset, terms = base.offset, list(base.terms)
        for operand, stride in steps(i, self.types):
            index = self._value(operand)
            if index.is_const():
                offset += index.signed_value * stride
            else:
                terms.append((index, stride))
        return Pointer(base.base, offset, tuple(terms))

    # ------------------------------------------------------------------------------------------------ effects

    def _load(self, i: Instruction) -> Node:
        if i.width is None:
            raise self._error("float" if _is_float(i.type) else "pointer", f"a value of type {i.type} in memory", i)
        result: Node | None = None
        for pointer, predicate in targets(self.graph, self._pointer(i.operands[0], i), self.reached[i.block]):
            node = self._load_one(i, i.width, pointer, predicate)
            result = node if result is None else self.graph.select(predicate, node, result)
        assert result is not None
        return result

    def _load_one(self, i: Instruction, width: int, pointer: Pointer, predicate: Node) -> Node:
        if isinstance(pointer.base, ir.Argument):
            stream = pointer.base.name
            self._port(self.process.reads, stream, width, i)
            effect = self._effect("read", stream, predicate, i)
            effect.result = self.graph.read(width, stream)
            effect.address = self._burst_index(pointer, width, i)
            return effect.result
        memory, address = self.arrays.locate(pointer, width, self.process, i)
        loaded = self.graph.load(width, memory.name, address)
        effect = self._effect("load", memory.name, predicate, i)
        effect.result, effect.address = loaded, address
        # What an earlier store of this turn wrote to the same place is not in the memory yet.
        assert self.loop
        value = loaded
        for store in self.loop.of("store", memory.name):
            assert store.address is not None
            assert store.data is not None
            same = self.graph.compare("eq", store.address, address)
            value = self.graph.select(self.graph.and_(store.predicate, same), store.data, value)
        return value

    def _store(self, i: Instruction) -> None:
        data = self._value(i.operands[0])
        for pointer, predicate in targets(self.graph, self._pointer(i.operands[1], i), self.reached[i.block]):
            if isinstance(pointer.base, ir.Argument):
                stream = pointer.base.name
                self._port(self.process.writes, stream, data.width, i)
                effect = self._effect("write", stream, predicate, i)
                effect.address = self._burst_index(pointer, data.width, i)
            else:
                memory, address = self.arrays.locate(pointer, data.width, self.process, i)
                effect = self._effect("store", memory.name, predicate, i)
                effect.address = address
            effect.data = data

    def _burst_index(self, pointer: Pointer, width: int, i: Instruction) -> Node | None:
        """The index of an m_axi access, None of a stream's. Streams are volatile, memory behind pointers is not."""
        assert isinstance(pointer.base, ir.Argument)
        if i.volatile != pointer.base.reference:
            what = "a volatile pointer" if i.volatile else "a reference to something else than a stream"
            raise self._error("process", f"{pointer.base.name} is {what}", i)
        if i.volatile:
            if pointer.offset or pointer.terms:
                raise self._error("pointer", "an array of streams, or arithmetic on a stream's address", i)
            return None
        if pointer.offset or len(pointer.terms) > 1 or any(8 * stride != width for _, stride in pointer.terms):
            raise self._error("burst", f"{pointer.base.name} is accessed otherwise than as {pointer.base.name}[i]", i)
        return pointer.terms[0][0] if pointer.terms else self.graph.const(32, 0)

    def _port(self, ports: dict[str, int], name: str, width: int, i: Instruction) -> None:
        known = self.process.reads.get(name, self.process.writes.get(name))
        if known is not None and (known != width or name not in ports):
            problem = "both read and written" if name not in ports else f"accessed as i{known} and as i{width}"
            raise self._error("stream", f"{name} is {problem} by {self.process.name}", i)
        ports[name] = width
        self.process.widths[name] = width

    def _effect(self, kind: EffectKind, target: str, predicate: Node, i: Instruction) -> Effect:
        assert self.loop is not None
        effect = Effect(kind, target, predicate, i.location)
        self.loop.effects.append(effect)
        self.places[effect] = (i.block, i)
        return effect

    def _check_streams(self, loop: Loop, region: Region) -> None:
        """Two accesses to one stream must exclude each other: they become one port, used once a turn."""
        for kind in ("read", "write"):
            effects = [effect for effect in loop.effects if effect.kind == kind]
            for number, second in enumerate(effects):
                for first in effects[:number]:
                    if first.target != second.target or self.places[first][1] is self.places[second][1]:
                        continue
                    if region.reaches(self.places[first][0], self.places[second][0]):
                        if second.address is not None:
                            message = f"{second.target} is accessed twice in one turn of the loop"
                            raise RuleError("burst", message, second.location)
                        verb = "read" if kind == "read" else "written"
                        message = f"{second.target} is {verb} twice in one turn of the loop"
                        raise RuleError("stream-access", message, second.location)

    def _trim(self) -> None:
        """Streams and memories are as wide as what is written to them: LLVM pads odd widths to whole bytes."""
        for stream in self.process.writes:
            effects = [effect for loop in self.process.loops for effect in loop.of("write", stream)]
            if all(effect.address is None for effect in effects):  # memory behind a pointer keeps its width
                self.process.writes[stream] = self._trimmed("write", stream)
        for memory in self.process.memories.values():
            memory.width = self._trimmed("store", memory.name)

    def _trimmed(self, kind: EffectKind, target: str) -> int:
        """Cuts what is written to a stream or memory to the bits that can be other than 0; their number."""
        effects = [(loop, effect) for loop in self.process.loops for effect in loop.of(kind, target)]
        width = max((effect.data.ones.bit_length() for _, effect in effects if effect.data), default=1)
        for loop, effect in effects:
            assert effect.data is not None
            self.graph.loop = loop.index
            effect.data = self.graph.bits(effect.data, 0, max(1, width))
            self.graph.loop = None
        return max(1, width)

    # ------------------------------------------------------------------------------------------------- errors

    def _error(self, rule: str, message: str, i: Instruction) -> RuleError:
        return RuleError(rule, message, i.location or self.graph.location or self.function.location)

    def _unsupported(self, i: Instruction) -> RuleError:
        if i.opcode in ("udiv", "sdiv", "urem", "srem"):
            return self._error("division", "division takes a divider of its own: shift, multiply, or precompute", i)
        if i.opcode in ("ptrtoint", "inttoptr", "bitcast", "addrspacecast"):
            return self._error("pointer", "a pointer is cast", i)
        if _is_float(i.type) or i.opcode in ("fcmp", "fptosi", "fptoui"):
            return self._error("float", "floating point has no hardware here", i)
        if i.opcode == "unreachable":
            return self._error("unsupported", "the end of this code is never reached", i)
        return self._error("unsupported", f"{i.callee if i.opcode == 'call' else i.opcode} has no hardware here", i)


_BINARY = {"add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem"}


def _is_float(type_text: str) -> bool:
    return type_text in ("half", "bfloat", "float", "double", "x86_fp80", "fp128")
