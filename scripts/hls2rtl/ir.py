"""A typed view of LLVM IR: functions, blocks and instructions as plain objects, with the user's source lines.

llvmlite gives instructions as text plus operands; everything that has to be read out of that text is read here, once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import llvmlite.binding as llvm  # type: ignore[import-untyped]

from .clang import HEADERS
from .errors import Location, RuleError, located

_MADE_UP = {"spec", "ref", "retval", "tmp", "agg", "or", "and", "not", "xor", "phiofops"}


@dataclass(frozen=True)
class Constant:
    """An integer constant; undefined values are 0. width is None for what is no integer (null, float, aggregate)."""

    width: int | None
    value: int
    type: str

    @property
    def signed_value(self) -> int:
        negative = self.width is not None and self.value >> (self.width - 1)
        return self.value - (1 << self.width) if self.width is not None and negative else self.value


@dataclass(eq=False)
class Global:
    name: str
    constant: bool


@dataclass(eq=False)
class Argument:
    name: str
    width: int | None  # None for pointers
    type: str
    reference: bool = False  # a C++ reference, not a pointer
    by_value: bool = False  # a struct passed by value


@dataclass(eq=False, repr=False)
class Block:
    name: str
    instructions: list[Instruction] = field(default_factory=list)
    successors: list[Block] = field(default_factory=list)  # of a conditional branch: taken if true, if false
    predecessors: list[Block] = field(default_factory=list)

    @property
    def terminator(self) -> Instruction:
        return self.instructions[-1]


@dataclass(eq=False, repr=False)
class Instruction:
    opcode: str
    name: str
    width: int | None  # of an integer result
    type: str
    block: Block
    text: str
    location: Location | None
    operands: list[Value] = field(default_factory=list)
    incoming: list[Block] = field(default_factory=list)  # of a phi, beside operands

    @property
    def variable(self) -> str:
        """The source's variable in LLVM's name: acc.sroa.0.1 is acc. Empty if LLVM made the name up."""
        first = self.name.split(".")[0]
        return "" if first in _MADE_UP else first

    @property
    def volatile(self) -> bool:
        return f"{self.opcode} volatile " in self.text

    @property
    def predicate(self) -> str:
        """Of an icmp: eq, ne, ult, slt ..."""
        found = re.search(r"icmp (?:samesign )?(\w+) ", self.text)
        assert found, self.text
        return found[1]

    @property
    def callee(self) -> str:
        """Of a call: the function's symbol, or empty for a call through a pointer."""
        last = self.operands[-1]
        return last.name if isinstance(last, Function | Global) else ""

    @property
    def source_type(self) -> str:
        """Of a getelementptr or an alloca: the type that it counts in."""
        found = re.search(r"(?:getelementptr|alloca) (?:inbounds |nuw |nusw |inrange\([^)]*\) )*(.*)", self.text)
        assert found, self.text
        return _first_type(found[1])


@dataclass(eq=False)
class Function:
    name: str  # the symbol
    location: Location | None
    returns: str = "void"
    defined: bool = True
    arguments: list[Argument] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)

    @property
    def short_name(self) -> str:
        return short_name(self.name)

    def instructions(self) -> Iterator[Instruction]:
        for block in self.blocks:
            yield from block.instructions


Value: TypeAlias = Constant | Global | Argument | Instruction | Function


@dataclass
class Module:
    functions: dict[str, Function]  # by symbol; without blocks if declared only, or not read
    types: Types


@dataclass(frozen=True)
class ArrayType:
    """An alloca's type: ``dimensions`` of elements, each ``element_bytes`` apart; no dimensions for a single value."""

    dimensions: tuple[int, ...]
    element_bytes: int


class Types:
    """Sizes of LLVM types as text, by the rules of the x86-64 data layout that clang is run with."""

    def __init__(self, module_text: str) -> None:
        self._structs = dict(re.findall(r'^(%(?:"[^"]*"|[\w.]+)) = type (.*)$', module_text, re.MULTILINE))

    def array(self, text: str) -> ArrayType:
        dimensions: list[int] = []
        while found := re.fullmatch(r"\[(\d+) x (.*)\]", text):
            dimensions.append(int(found[1]))
            text = found[2]
        return ArrayType(tuple(dimensions), self.bytes(text))

    def bytes(self, text: str) -> int:
        """The distance of two such values in an array."""
        size, alignment = self._layout(text)
        return -(-size // alignment) * alignment

    def fields(self, struct: str) -> list[str]:
        body = self._structs.get(struct, struct).strip("<>").strip()
        return _split_types(body[1:-1].strip())

    def step(self, text: str, index: int) -> tuple[str, int]:
        """Into part ``index`` of a struct: its type and its offset in bytes."""
        offset = 0
        packed = self._structs.get(text, text).startswith("<")
        for position, part in enumerate(self.fields(text)):
            size, alignment = self._layout(part)
            alignment = 1 if packed else alignment
            offset = -(-offset // alignment) * alignment
            if position == index:
                return part, offset
            offset += size
        raise RuleError("pointer", f"no part {index} in {text}")

    def _layout(self, text: str) -> tuple[int, int]:
        if found := re.fullmatch(r"i(\d+)", text):
            size = -(-int(found[1]) // 8)
            alignment = min(16, 1 << (size - 1).bit_length())
            return -(-size // alignment) * alignment, alignment
        if text == "ptr":
            return 8, 8
        if found := re.fullmatch(r"\[(\d+) x (.*)\]", text):
            size, alignment = self._layout(found[2])
            return int(found[1]) * (-(-size // alignment) * alignment), alignment
        if text in self._structs or text.startswith(("{", "<{")):
            packed = self._structs.get(text, text).startswith("<")
            size, most = 0, 1
            for part in self.fields(text):
                part_size, alignment = self._layout(part)
                alignment = 1 if packed else alignment
                size = -(-size // alignment) * alignment + part_size
                most = max(most, alignment)
            return size, most
        raise RuleError("memory", f"a local variable of type {text}")


def _split_types(text: str) -> list[str]:
    parts = []
    while text:
        first = _first_type(text)
        parts.append(first)
        text = text[len(first) :].lstrip(", ")
    return parts


def _first_type(text: str) -> str:
    """The type that a text begins with: up to the first comma or space outside of brackets and quotes."""
    depth, quoted = 0, False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif character in "[{<(":
            depth += 1
        elif character in "]}>)":
            depth -= 1
        elif character == "," and depth == 0:
            return text[:position]
    return text


def short_name(symbol: str) -> str:
    """The last name of a mangled symbol: _ZN2qk8rd_queryEv and rd_query are both rd_query."""
    found = re.match(r"_ZL?(N[KVr]*)?", symbol)
    if not found:
        return symbol
    rest, name = symbol[found.end() :], symbol
    while length := re.match(r"L?(\d+)", rest):
        start = length.end()
        name = rest[start : start + int(length[1])]
        rest = rest[start + int(length[1]) :]
        if not found[1]:
            break
    return name


def variable_name(symbol: str) -> str:
    """A global's name in the source; clang calls the values of a constant local array __const.FUNCTION.NAME."""
    return symbol.rsplit(".", 1)[-1] if symbol.startswith("__const.") else short_name(symbol)


class DebugLines:
    """Which source line an instruction stands for: the innermost one that is not in the flow's own headers."""

    def __init__(self, module_text: str) -> None:
        self._files: dict[str, tuple[str, bool]] = {}  # of a file's node: its name, whether it is the flow's own
        self._locations: dict[str, Location | None] = {}
        self._nodes = dict(re.findall(r"^!(\d+) = (.*)$", module_text, re.MULTILINE))

    def of(self, text: str) -> Location | None:
        """The location of an instruction's or a function's text, by its !dbg attachment."""
        found = re.search(r"!dbg !(\d+)", text)
        return self._at(found[1]) if found else None

    def loop(self, text: str) -> Location | None:
        """Where the loop begins whose back edge this branch is."""
        found = re.search(r"!llvm\.loop !(\d+)", text)
        if not found:
            return None
        for reference in re.findall(r"!(\d+)", self._nodes[found[1]])[1:]:
            if self._nodes[reference].startswith("!DILocation"):
                return self._at(reference)
        return None

    def unrolled(self, text: str) -> bool:
        """Whether the loop of this back edge was meant to be unrolled."""
        found = re.search(r"!llvm\.loop !(\d+)", text)
        references = re.findall(r"!(\d+)", self._nodes[found[1]])[1:] if found else []
        return any("unroll.full" in self._nodes[reference] for reference in references)

    def pipelined(self, text: str) -> bool:
        """Whether the loop of this back edge has a PIPELINE pragma."""
        found = re.search(r"!llvm\.loop !(\d+)", text)
        references = re.findall(r"!(\d+)", self._nodes[found[1]])[1:] if found else []
        return any("unroll.disable" in self._nodes[reference] for reference in references)

    def _at(self, number: str) -> Location | None:
        if number not in self._locations:
            self._locations[number] = self._find(number)
        return self._locations[number]

    def _find(self, number: str) -> Location | None:
        node = self._nodes[number]
        if "DISubprogram" in node:
            line = re.search(r"\bline: (\d+)", node)
            return Location(self._file(number)[0], int(line[1]) if line else 0)
        scope = re.search(r"\bscope: !(\d+)", node)
        line = re.search(r"\bline: (\d+)", node)
        inlined = re.search(r"\binlinedAt: !(\d+)", node)
        if scope is None:
            return None
        if line is not None and line[1] == "0":  # code that LLVM joined from several lines
            return self._at(inlined[1]) if inlined else None
        file, own = self._file(scope[1])
        if inlined and (own or line is None):
            return self._at(inlined[1])
        return Location(file, int(line[1]) if line else 0)

    def _file(self, scope: str) -> tuple[str, bool]:
        node = self._nodes[scope]
        file = re.search(r"\bfile: !(\d+)", node)
        if file is None:
            outer = re.search(r"\bscope: !(\d+)", node)
            return self._file(outer[1]) if outer else ("?", False)
        if file[1] not in self._files:
            name = re.search(r'filename: "([^"]*)", directory: "([^"]*)"', self._nodes[file[1]])
            path = located(name[1], 0, name[2]).file if name else "?"
            self._files[file[1]] = path, Path(path).resolve().is_relative_to(HEADERS)
        return self._files[file[1]]


def read_module(module: llvm.ModuleRef, only: set[str] | None = None) -> tuple[Module, DebugLines]:
    """Reads a module into objects. only: symbols of the functions whose bodies are read; all of them if None."""
    text = str(module)
    lines = DebugLines(text)
    reader = _Reader(lines)
    for variable in module.global_variables:
        declaration = str(variable).split(" = ", 1)[-1]
        reader.values[hash(variable)] = Global(variable.name, bool(re.match(r"[^{\[]*\bconstant\b", declaration)))
    headers = {found[1]: found[0] for found in _HEADER.finditer(text)}
    functions = {}
    for reference in module.functions:
        header = headers.get(reference.name, "")
        returns = re.search(r"\b(void|i\d+|ptr|half|float|double|[\[{<%].*?) @", header)
        function = Function(reference.name, lines.of(header), returns[1].split()[-1] if returns else "void")
        function.defined = not reference.is_declaration
        reader.values[hash(reference)] = function
        functions[reference.name] = function
    bodies = {found[1]: found[2] for found in _BODY.finditer(text)}
    for reference in module.functions:
        name = reference.name
        if name in bodies and (only is None or name in only):
            reader.read_body(reference, functions[name], _instructions(bodies[name]), _parameters(headers[name]))
    return Module(functions, Types(text)), lines


_HEADER = re.compile(r'^(?:define|declare) [^\n]*?@"?([^\s"(]+)"?\([^\n]*$', re.MULTILINE)
_BODY = re.compile(r'^define [^\n]*?@"?([^\s"(]+)"?\([^\n]*\{\n(.*?)^\}', re.MULTILINE | re.DOTALL)


def _instructions(body: str) -> list[str]:
    """A function's instructions as text. Metadata has its numbers in the text of the whole module only."""
    lines: list[str] = []
    for line in body.splitlines():
        if re.match(r"  [^\s\]#]", line):
            lines.append(line.strip())
        elif line.startswith("  ]"):  # the end of a switch's cases
            lines[-1] += line[3:]
    return lines


def _parameters(header: str) -> list[str]:
    """The parameters' types and attributes as text, from a function's first line."""
    start = header.index("(", header.index("@"))
    depth, end = 0, start
    for end in range(start, len(header)):
        depth += {"(": 1, ")": -1}.get(header[end], 0)
        if depth == 0:
            break
    return _split_types(header[start + 1 : end])


def _width(type_text: str) -> int | None:
    found = re.fullmatch(r"i(\d+)", type_text)
    return int(found[1]) if found else None


class _Reader:
    def __init__(self, lines: DebugLines) -> None:
        self.values: dict[int, Value] = {}
        self._lines = lines

    def read_body(self, reference: llvm.ValueRef, function: Function, body: list[str], attributes: list[str]) -> None:
        for argument in reference.arguments:
            kind = str(argument.type)
            mark = attributes[len(function.arguments)] if attributes else ""
            made = Argument(argument.name, _width(kind), kind, "dereferenceable" in mark, "byval" in mark)
            self.values[hash(argument)] = made
            function.arguments.append(made)
        blocks = {hash(block): Block(block.name) for block in reference.blocks}
        pairs: list[tuple[llvm.ValueRef, Instruction]] = []
        texts = iter(body)
        for block in reference.blocks:
            for each in block.instructions:
                kind = str(each.type)
                text = next(texts)
                assert f" {each.opcode}" in f" {text}" or each.opcode.endswith("br"), (each.opcode, text)
                at = self._lines.of(text)
                made_instruction = Instruction(
                    each.opcode, each.name, _width(kind), kind, blocks[hash(block)], text, at
                )
                blocks[hash(block)].instructions.append(made_instruction)
                self.values[hash(each)] = made_instruction
                pairs.append((each, made_instruction))
            function.blocks.append(blocks[hash(block)])
        for each, instruction in pairs:
            targets = [blocks[hash(o)] for o in each.operands if o.value_kind.name == "basic_block"]
            instruction.operands = [self._value(o) for o in each.operands if o.value_kind.name != "basic_block"]
            if instruction.opcode == "phi":
                instruction.incoming = [blocks[hash(o)] for o in each.incoming_blocks]
            elif targets:
                # LLVM keeps a conditional branch's targets in reverse: false, true.
                block = instruction.block
                block.successors = targets[::-1] if len(targets) == 2 else targets
                for target in dict.fromkeys(targets):
                    target.predecessors.append(block)

    def _value(self, operand: llvm.ValueRef) -> Value:
        known = self.values.get(hash(operand))
        if known is not None:
            return known
        # LLVM keeps one object for equal constants, so each is looked at once.
        self.values[hash(operand)] = constant = _read_constant(operand)
        return constant


def _read_constant(operand: llvm.ValueRef) -> Constant:
    kind = operand.value_kind.name
    type_text = "" if kind == "metadata_as_value" else str(operand.type)
    width = _width(type_text)
    if width is None:
        return Constant(None, 0, type_text)
    if kind in ("undef_value", "poison_value"):
        return Constant(width, 0, type_text)
    if width <= 64 and kind == "constant_int":
        return Constant(width, operand.get_constant_value() & ((1 << width) - 1), type_text)
    found = re.search(r" (-?\d+)$", str(operand))
    if not found:
        raise RuleError("pointer", f"a number made of an address: {operand}")
    return Constant(width, int(found[1]) & ((1 << width) - 1), type_text)
