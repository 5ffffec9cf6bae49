"""The top function: which processes run, which streams join them, and which ports the kernel has."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from . import ir
from .errors import Location, RuleError
from .pragmas import Interface, Pragmas
from .process import Process


@dataclass(eq=False)
class Channel:
    """A stream inside the kernel. declared: the source's depth; depth: places in the FIFO (a power of two)."""

    name: str
    width: int
    declared: int
    depth: int
    writer: str
    reader: str


@dataclass(eq=False)
class Instance:
    """One process at work: parameter -> the top's argument or stream, or a constant."""

    name: str
    process: Process
    connections: dict[str, str | int]


@dataclass(frozen=True)
class Port:
    """An argument of the top: a scalar register, memory behind AXI, or a stream of the kernel itself."""

    name: str
    kind: Literal["scalar", "memory", "stream"]
    width: int  # of a scalar, or of one element
    direction: Literal["read", "write", ""] = ""
    bundle: str = ""


@dataclass(eq=False)
class Design:
    top: str
    ports: list[Port]
    instances: list[Instance]
    channels: list[Channel]
    processes: list[Process] = field(default_factory=list)


def is_constructor(symbol: str) -> bool:
    return bool(re.match(r"_ZN.*[CD][12]E", symbol))


def find_processes(module: ir.Module, top: str) -> list[str]:
    """Symbols of the functions that the top calls, in order, as the source has them."""
    function = module.functions.get(top)
    if function is None or not function.blocks:
        mangled = [f for f in module.functions.values() if f.defined and f.short_name == top]
        hint = 'is not extern "C"' if mangled else "is not in the source"
        raise RuleError("top", f"the top function {top} {hint}", mangled[0].location if mangled else None)
    calls = [i.callee for i in function.instructions() if i.opcode == "call"]
    processes = list(dict.fromkeys(c for c in calls if c and not c.startswith("llvm.") and not is_constructor(c)))
    _check_used(function, set(processes))
    return processes


def _check_used(top: ir.Function, processes: set[str]) -> None:
    used = {o for i in top.instructions() if i.opcode == "call" and i.callee in processes for o in i.operands}
    for i in top.instructions():
        if i.opcode == "alloca" and "class.hls::stream" in i.source_type and i not in used:
            raise RuleError("stream", f"the stream {i.name} is not used", _declared_at(top, i))


def _declared_at(top: ir.Function, variable: ir.Instruction) -> Location | None:
    """An alloca has no line of its own; the first instruction that uses it begins its life."""
    lines = (i.location for i in top.instructions() if variable in i.operands and i.location)
    return next(lines, top.location)


def read_design(top: ir.Function, types: ir.Types, processes: dict[str, Process], pragmas: Pragmas) -> Design:
    """Raises RuleError where the top is more than a list of calls, or a stream lacks a writer or a reader."""
    return _Reader(top, types, processes, pragmas).read()


class _Reader:
    def __init__(self, top: ir.Function, types: ir.Types, processes: dict[str, Process], pragmas: Pragmas) -> None:
        self.top, self.types, self.processes, self.pragmas = top, types, processes, pragmas
        self.streams: dict[ir.Value, str] = {}
        self.depths: dict[str, int] = {}
        self.instances: list[Instance] = []
        self.locations: dict[str, Location | None] = {}

    def read(self) -> Design:
        if len(self.top.blocks) != 1:
            raise RuleError("top", f"{self.top.name} has branches or loops of its own", self.top.location)
        for number, argument in enumerate(self.top.arguments):
            argument.name = argument.name or f"argument{number}"
        for instruction in self.top.blocks[0].instructions:
            self._instruction(instruction)
        if not self.instances:
            raise RuleError("top", f"{self.top.name} calls no process", self.top.location)
        self._check_depths()
        self._check_interfaces()
        ports = [self._port(argument) for argument in self.top.arguments]
        self._check_bundles(ports)
        used = list(dict.fromkeys(instance.process.symbol for instance in self.instances))
        return Design(self.top.name, ports, self.instances, self._channels(), [self.processes[s] for s in used])

    # ------------------------------------------------------------------------------------------------- the body

    def _instruction(self, i: ir.Instruction) -> None:
        if i.opcode == "alloca":
            self._stream(i)
        elif i.opcode == "call" and i.callee in self.processes:
            self._call(i)
        elif i.opcode == "call" and i.callee.startswith(("llvm.lifetime.", "llvm.dbg.", "llvm.experimental.noalias")):
            return
        elif i.opcode != "ret":
            message = f"{self.top.name} computes something ({i.opcode}): pass its arguments on as they are"
            raise RuleError("top", message, i.location or self.top.location)

    def _stream(self, i: ir.Instruction) -> None:
        if "class.hls::stream" not in i.source_type:
            raise RuleError("top", f"{i.name} is no stream: the top has streams only", i.location or self.top.location)
        self.streams[i] = i.name
        self.locations[i.name] = _declared_at(self.top, i)
        fields = self.types.fields(i.source_type)
        declared = [re.fullmatch(r"\[(\d+) x i8\]", part) for f in fields for part in self._fields(f)]
        depth = next((int(found[1]) for found in declared if found), 0)
        pragma = self.pragmas.stream_depths.get((self.top.short_name, i.name))
        self.depths[i.name] = pragma[0] if pragma else depth or 2

    def _fields(self, text: str) -> list[str]:
        return self.types.fields(text) if "stream_depth" in text else []

    def _call(self, i: ir.Instruction) -> None:
        process = self.processes[i.callee]
        connections: dict[str, str | int] = {}
        for parameter, operand in zip(process.parameters, i.operands[:-1], strict=True):
            if isinstance(operand, ir.Constant) and operand.width:
                connections[parameter] = operand.value
            elif isinstance(operand, ir.Argument):
                connections[parameter] = operand.name
            elif operand in self.streams:
                connections[parameter] = self.streams[operand]
            else:
                message = f"{process.name} is given something else than a stream or an argument of {self.top.name}"
                raise RuleError("top", message, i.location or self.top.location)
        count = sum(instance.process is process for instance in self.instances)
        self.instances.append(Instance(process.name + (f"_call{count + 1}" if count else ""), process, connections))

    def _check_depths(self) -> None:
        for (function, variable), (_, at) in self.pragmas.stream_depths.items():
            if function == self.top.short_name and variable not in self.depths:
                raise RuleError("pragma", f"{function} has no stream {variable}, or does not use it", at)

    # ------------------------------------------------------------------------------------------------- channels

    def _ends(self, name: str, direction: Literal["reads", "writes"]) -> list[tuple[Instance, str]]:
        return [
            (instance, parameter)
            for instance in self.instances
            for parameter, connected in instance.connections.items()
            if connected == name and parameter in getattr(instance.process, direction)
        ]

    def _channels(self) -> list[Channel]:
        channels = []
        for name in self.streams.values():
            writers, readers = self._ends(name, "writes"), self._ends(name, "reads")
            at = self.locations[name]
            for ends, verb in ((writers, "writes"), (readers, "reads")):
                if len(ends) != 1:
                    who = ", ".join(instance.name for instance, _ in ends) or "no process"
                    raise RuleError("stream", f"{who} {verb} the stream {name}: it needs exactly one", at)
            (writer, written), (reader, read) = writers[0], readers[0]
            if writer is reader:
                raise RuleError("stream", f"{writer.name} both writes and reads the stream {name}", at)
            if writer.process.widths[written] != reader.process.widths[read]:
                raise RuleError("stream", f"{name} is written and read as different types", at)
            declared = self.depths[name]
            width = writer.process.writes[written]
            depth = fifo_depth(declared, writer.process, written)
            channels.append(Channel(name, width, declared, depth, writer.name, reader.name))
        return channels

    # ---------------------------------------------------------------------------------------------------- ports

    def _port(self, argument: ir.Argument) -> Port:
        name = argument.name
        if argument.width:
            if argument.width not in (1, 8, 16, 32, 64):
                raise RuleError("interface", f"{name} has {argument.width} bits", self.top.location)
            return Port(name, "scalar", argument.width)
        writers, readers = self._ends(name, "writes"), self._ends(name, "reads")
        if argument.type != "ptr" or len(writers) + len(readers) != 1:
            who = ", ".join(instance.name for instance, _ in writers + readers) or "no process"
            raise RuleError(
                "interface", f"{who} uses {name}: exactly one process reads or writes it", self.top.location
            )
        instance, parameter = (writers or readers)[0]
        direction: Literal["read", "write"] = "write" if writers else "read"
        if parameter not in instance.process.bursts:
            return Port(name, "stream", instance.process.widths[parameter], direction)
        bundle = next((p.bundle for p in self._pragmas(name) if p.mode == "m_axi"), "")
        if not bundle:
            message = f"{name} needs #pragma HLS INTERFACE m_axi port={name} bundle=..."
            raise RuleError("interface", message, self.top.location)
        return Port(name, "memory", instance.process.widths[parameter], direction, bundle)

    def _pragmas(self, port: str) -> list[Interface]:
        return [p for p in self.pragmas.interfaces.get(self.top.short_name, []) if p.port == port]

    def _check_interfaces(self) -> None:
        names = {argument.name for argument in self.top.arguments} | {"return", ""}
        for pragma in self.pragmas.interfaces.get(self.top.short_name, []):
            if pragma.port not in names:
                raise RuleError("pragma", f"{self.top.name} has no argument {pragma.port}", pragma.location)

    def _check_bundles(self, ports: list[Port]) -> None:
        seen: dict[str, str] = {}
        for port in ports:
            if port.bundle and port.bundle in seen:
                message = f"{seen[port.bundle]} and {port.name} share the bundle {port.bundle}"
                raise RuleError("interface", message, self.top.location)
            seen[port.bundle] = port.name


def fifo_depth(declared: int, process: Process, parameter: str) -> int:
    """Room for the declared depth besides the turns that hold a reservation; LUT RAM has 32 places at the least."""
    stages = [effect.stage for loop in process.loops for effect in loop.of("write", parameter)]
    in_flight = max(stages, default=0)
    return max(32, 1 << (declared + in_flight + 3 - 1).bit_length())
