"""A scheduled process as a module: free-running pipelines behind a small state machine.

Nothing in a pipeline stalls. A turn starts when its inputs are there and every stream that it may write has a place
reserved for it; from then on it moves one stage per clock. So there is no stall signal to fan out, a pipeline always
drains, and the only conditions that meet in one gate are those of the first stage.
"""

from __future__ import annotations

from collections.abc import Callable

from ..graph import Node
from ..process import Effect, Loop, Memory, Process
from ..schedule import WIRING
from .expressions import constant, expression
from .text import Names, declare, indent, port, port_name

_TRUE = constant(1, 1)
_REFORMED = ("concat", "replicate", "not")  # formed again in a later stage instead of being kept in a register
_INLINE = ("bits", "replicate", "not")  # written where they are used


def process_module(process: Process, module: str) -> str:
    """The module's text."""
    return _Module(process, module).text()


class _Module:
    def __init__(self, process: Process, module: str) -> None:
        self.process, self.module = process, module
        self.ports = self._ports()
        taken = {line.rsplit(" ", 1)[1] for line in self.ports} | set(process.memories)
        numbers = range(len(process.loops))
        own = {f"{signal}_{k}" for signal in ("run", "fire", "busy", "enter", "valid") for k in numbers}
        self.names = Names(taken | own | {"phase", "phase_t", *self._phases()})
        self.named: dict[Node, str] = {}
        self.delayed: dict[tuple[Node, int], str] = {}
        self.held: dict[Node, str] = {}
        self.wires: dict[tuple[str, int, int], list[str]] = {}  # by loop and stage, or segment and step
        self.registers: list[str] = []
        self.clocked: list[str] = []
        self.bypasses: list[tuple[Memory, Loop, str, str, str]] = []
        self.states: list[Node] = []  # whose assignments are still to be written: they may use any wire

    # ------------------------------------------------------------------------------------------------- values

    def inside(self, node: Node, loop: Loop, stage: int) -> str:
        """A value in a stage of a loop's pipeline."""
        if node.op == "const":
            return constant(node.width, node.value)
        if node.loop != loop.index:
            return self.settled(node)
        if node.op in _REFORMED and stage > node.stage:
            return _wired(node, lambda arg: self.inside(arg, loop, stage))
        inline = node.op in _INLINE
        name = _wired(node, lambda arg: self.inside(arg, loop, node.stage)) if inline else self._named(node)
        for later in range(node.stage + 1, stage + 1):
            key = (node, later)
            if key not in self.delayed:
                self.delayed[key] = self.names.unique(f"{self.named.get(node, _wanted(node))}_s{later}")
                self.registers.append(declare(node.width, self.delayed[key]))
                self.clocked.append(f"{self.delayed[key]} <= {name};")
            name = self.delayed[key]
        return name

    def settled(self, node: Node) -> str:
        """A value of no loop, or one that a loop left behind, when it is used later than in its own step."""
        if node.op == "const":
            return constant(node.width, node.value)
        if node.op == "argument":
            return port_name(node.target)
        if node.loop is not None:
            return self._left_behind(node)
        if node.op in WIRING:
            return _wired(node, self.settled)
        if node not in self.held:
            name = self._named(node)
            self.held[node] = self.names.unique(f"{name}_q")
            self.registers.append(declare(node.width, self.held[node]))
            self.clocked.append(f"if ({self._step(node.segment, node.stage)}) {self.held[node]} <= {name};")
        return self.held[node]

    def _left_behind(self, node: Node) -> str:
        if node not in self.held:
            assert node.loop is not None
            loop = self.process.loops[node.loop]
            name = self.inside(node, loop, node.stage)
            self.held[node] = self.names.unique(f"{_wanted(node)}_last")
            self.registers.append(declare(node.width, self.held[node]))
            self.clocked.append(f"if ({self._valid(loop, node.stage)}) {self.held[node]} <= {name};")
        return self.held[node]

    def _named(self, node: Node) -> str:
        """The name of a node in its own stage or step; its wire is written on first use."""
        if node in self.named:
            return self.named[node]
        self.named[node] = name = self.names.unique(_wanted(node))
        if node.loop is not None:
            self._wire_in_loop(node, name, self.process.loops[node.loop])
        else:
            key = ("setup", node.segment, node.stage)
            text = expression(node, lambda arg: self._beside(node, arg))
            self.wires.setdefault(key, []).append(_assign(node, name, text))
        return name

    def _beside(self, node: Node, arg: Node) -> str:
        """An argument of a setup node: the wire if it is computed in the same step."""
        if arg.op in ("const", "argument") or arg.loop is not None:
            return self.settled(arg)
        if (arg.segment, arg.stage) != (node.segment, node.stage):
            return self.settled(arg)
        if arg.op in _INLINE:
            return _wired(arg, lambda part: self._beside(arg, part))
        return self._named(arg)

    def _wire_in_loop(self, node: Node, name: str, loop: Loop) -> None:
        key = ("stage", loop.index, node.stage)
        if node.op == "state":
            self.registers.append(f"{declare(node.width, name)}{_comment(node)}")
            self.states.append(node)
        elif node.op == "read":
            self.wires.setdefault(key, []).append(_assign(node, name, f"{node.target}_data"))
        elif node.op == "load":
            self._load(node, name, loop, key)
        else:
            text = expression(node, lambda arg: self.inside(arg, loop, node.stage))
            self.wires.setdefault(key, []).append(_assign(node, name, text))

    def _update(self, state: Node) -> str:
        """A state's assignments: when its loop is entered, and after each turn."""
        loop = self.process.loops[state.loop or 0]
        name = self.named[state]
        first, following = self.settled(state.args[0]), self.inside(state.args[1], loop, state.stage)
        turn = self._valid(loop, state.stage)
        return f"if ({self._enter(loop)}) {name} <= {first}; else if ({turn}) {name} <= {following};"

    def _load(self, node: Node, name: str, loop: Loop, key: tuple[str, int, int]) -> None:
        memory = self.process.memories[node.target]
        address = self.inside(node.args[0], loop, node.stage - memory.synchronous)
        element = f"{memory.name}[{address}]"
        if memory.synchronous:
            register = self.names.unique(f"{memory.name}_q")
            self.registers.append(declare(memory.width, register))
            self.clocked.append(f"{register} <= {element};")
            element = self._or_just_stored(memory, loop, register, address)
        if memory.width < node.width:
            element = f"{{{constant(node.width - memory.width, 0)}, {element}}}"
        self.wires.setdefault(key, []).append(_assign(node, name, element))

    def _or_just_stored(self, memory: Memory, loop: Loop, register: str, address: str) -> str:
        """What a block RAM gave, unless the turn before stored to that place while it was being read."""
        if not loop.of("store", memory.name):
            return register
        hit, stored = self.names.unique(f"{memory.name}_hit"), self.names.unique(f"{memory.name}_stored")
        self.registers += [declare(1, hit), declare(memory.width, stored)]
        self.bypasses.append((memory, loop, hit, stored, address))
        return f"({hit} ? {stored} : {register})"

    def _bypass(self, memory: Memory, loop: Loop, hit: str, stored: str, address: str) -> list[str]:
        (store,) = loop.of("store", memory.name)
        when, written, data = self._store(store, loop)
        return [f"{hit} <= ({when}) && ({written} == {address});", f"{stored} <= {data};"]

    # ------------------------------------------------------------------------------------------------ control

    def _step(self, segment: int, step: int) -> str:
        return f"phase == SETUP_{segment}_{step}"

    def _enter(self, loop: Loop) -> str:
        return f"enter_{loop.index}"

    def _valid(self, loop: Loop, stage: int) -> str:
        return f"fire_{loop.index}" if stage == 0 else f"valid_{loop.index}[{stage}]"

    def _phases(self) -> list[str]:
        phases = ["IDLE"]
        for loop in self.process.loops:
            phases += [f"SETUP_{loop.index}_{step}" for step in range(self.process.setup_steps[loop.index])]
            phases += [f"ENTER_{loop.index}", f"LOOP_{loop.index}"]
        return [*phases, "DONE"]

    def _state_machine(self) -> list[str]:
        phases = self._phases()
        lines = [f"IDLE: if (start) phase <= {phases[1]};"]
        following = dict(zip(phases, [*phases[1:], "IDLE"], strict=True))
        for phase in phases[1:]:
            index = int(phase.split("_")[1]) if "_" in phase else 0
            if phase.startswith("ENTER"):
                skip = following[following[phase]]
                guard = self.process.loops[index].guard
                entered = (
                    following[phase] if guard.is_const(1) else f"{self.settled(guard)} ? {following[phase]} : {skip}"
                )
                lines.append(f"{phase}: phase <= {entered};")
            elif phase.startswith("LOOP"):
                lines.append(f"{phase}: if (!busy_{index}) phase <= {following[phase]};")
            else:
                lines.append(f"{phase}: phase <= {following[phase]};")
        lines.append("default: phase <= IDLE;")
        body = ["case (phase)", *indent(lines), "endcase"]
        return ["always_ff @(posedge clock)", "  if (reset) phase <= IDLE;", "  else", *indent(body, 4)]

    def _loop_control(self, loop: Loop) -> list[str]:
        k = loop.index
        starts = [f"run_{k}"]
        for stream in dict.fromkeys(e.target for e in loop.effects if e.kind == "read"):
            reading = self._either([self.inside(e.predicate, loop, 0) for e in loop.of("read", stream)])
            starts.append(f"{stream}_valid" if reading == _TRUE else f"(~{reading} | {stream}_valid)")
        starts += [f"{stream}_space" for stream in dict.fromkeys(e.target for e in loop.effects if e.kind == "write")]
        proceed = self.inside(loop.proceed, loop, 0)
        lines = [
            f"// {loop.name}{f', {loop.location}' if loop.location else ''}: {loop.stages} stages",
            f"logic run_{k}, fire_{k}, busy_{k}, enter_{k};",
            f"assign enter_{k} = phase == ENTER_{k};",
            f"assign fire_{k} = {' & '.join(starts)};",
        ]
        if loop.stages > 1:
            valid = f"valid_{k}"
            lines += [
                f"logic [{loop.stages - 1}:1] {valid};",
                f"assign busy_{k} = run_{k} | (|{valid});",
                "always_ff @(posedge clock)",
                f"  if (reset) {valid} <= '0;",
                f"  else {valid} <= {{{f'{valid}[{loop.stages - 2}:1], ' if loop.stages > 2 else ''}fire_{k}}};",
            ]
        else:
            lines.append(f"assign busy_{k} = run_{k};")
        return [
            *lines,
            "always_ff @(posedge clock)",
            f"  if (reset) run_{k} <= 1'b0;",
            f"  else if (enter_{k}) run_{k} <= {self.settled(loop.guard)};",
            f"  else if (fire_{k}) run_{k} <= {proceed};",
        ]

    # ------------------------------------------------------------------------------------------------ effects

    def _reads(self) -> list[str]:
        lines = []
        for stream in self.process.reads:
            ready = []
            for loop in self.process.loops:
                effects = loop.of("read", stream)
                if effects:
                    reading = self._either([self.inside(e.predicate, loop, 0) for e in effects])
                    ready.append(f"fire_{loop.index}" + ("" if reading == _TRUE else f" & {reading}"))
            lines.append(f"assign {stream}_ready = {' | '.join(f'({term})' for term in ready) or constant(1, 0)};")
        return lines

    def _writes(self) -> list[str]:
        lines = []
        for stream in self.process.writes:
            reserve, cancel, push = [], [], []
            data: list[tuple[str, str]] = []
            for loop in self.process.loops:
                effects = loop.of("write", stream)
                if not effects:
                    continue
                stage = effects[0].stage
                valid = self._valid(loop, stage)
                reserve.append(f"fire_{loop.index}")
                writes = [(self.inside(e.predicate, loop, stage), self._data(e, loop)) for e in effects]
                writing = self._either([predicate for predicate, _ in writes])
                push.append(valid if writing == _TRUE else f"({valid} & {writing})")
                if writing != _TRUE:
                    cancel.append(f"({valid} & ~{writing})")
                data += [(f"{valid} & {predicate}", value) for predicate, value in writes[:-1]]
                data.append((valid, writes[-1][1]))
            value = _first_of(data) if data else constant(self.process.writes[stream], 0)
            lines += [
                f"assign {stream}_reserve = {' | '.join(reserve) or constant(1, 0)};",
                f"assign {stream}_cancel = {' | '.join(cancel) or constant(1, 0)};",
                f"assign {stream}_push = {' | '.join(push) or constant(1, 0)};",
                f"assign {stream}_data = {value};",
            ]
        return lines

    def _data(self, effect: Effect, loop: Loop) -> str:
        assert effect.data is not None
        return self.inside(effect.data, loop, effect.stage)

    def _stores(self, memory: Memory) -> list[str]:
        """One write port if no loop stores twice in a turn; else a port for each store, in order."""
        stores = [self._store(effect, loop) for loop in self.process.loops for effect in loop.of("store", memory.name)]
        if any(len(loop.of("store", memory.name)) > 1 for loop in self.process.loops) or len(stores) < 2:
            return [f"if ({when}) {memory.name}[{address}] <= {data};" for when, address, data in stores]
        enable = " || ".join(f"({when})" for when, _, _ in stores)
        address = _first_of([(when, address) for when, address, _ in stores])
        data = _first_of([(when, data) for when, _, data in stores])
        return [f"if ({enable}) {memory.name}[{address}] <= {data};"]

    def _store(self, effect: Effect, loop: Loop) -> tuple[str, str, str]:
        """When it stores, where, what."""
        assert effect.address is not None
        valid = self._valid(loop, effect.stage)
        predicate = self.inside(effect.predicate, loop, effect.stage)
        when = valid if predicate == _TRUE else f"{valid} && {predicate}"
        return when, self.inside(effect.address, loop, effect.stage), self._data(effect, loop)

    def _either(self, predicates: list[str]) -> str:
        predicates = list(dict.fromkeys(predicates))
        if _TRUE in predicates:
            return _TRUE
        return predicates[0] if len(predicates) == 1 else f"({' | '.join(predicates)})"

    # --------------------------------------------------------------------------------------------------- text

    def _ports(self) -> list[str]:
        process = self.process
        ports = [port("input", 1, name) for name in ("clock", "reset", "start")] + [port("output", 1, "done")]
        ports += [port("input", width, port_name(name)) for name, width in process.scalars.items()]
        for name, width in process.reads.items():
            ports += [port("input", width, f"{name}_data"), port("input", 1, f"{name}_valid")]
            ports += [port("output", 1, f"{name}_ready")]
        for name, width in process.writes.items():
            ports += [port("output", width, f"{name}_data")]
            ports += [port("output", 1, f"{name}_{signal}") for signal in ("reserve", "cancel", "push")]
            ports += [port("input", 1, f"{name}_space")]
        for name in process.bursts:
            ports += [port("output", 1, f"{name}_request"), port("output", 32, f"{name}_length")]
        return ports

    def text(self) -> str:
        process = self.process
        for node in [*process.setup, *(node for loop in process.loops for node in loop.nodes)]:
            if node.op not in WIRING:
                self._named(node)  # in order: arguments before what is made of them
        control = [line for loop in process.loops for line in self._loop_control(loop)]
        effects = self._reads() + self._writes()
        stores = {memory: self._stores(memory) for memory in process.memories.values()}
        bursts = self._bursts()
        machine = self._state_machine()
        for bypass in self.bypasses:
            self.clocked += self._bypass(*bypass)
        while self.states:
            self.clocked.append(self._update(self.states.pop(0)))
        memories = []
        for memory in process.memories.values():
            style = '(* ram_style = "block" *) ' if memory.synchronous else ""
            memories.append(f"{style}logic [{memory.width - 1}:0] {memory.name} [{memory.depth}];")
        phases = self._phases()
        bits = max(1, (len(phases) - 1).bit_length())
        lines = [
            f"// {process.name}{f', {process.location}' if process.location else ''}",
            f"module {self.module} (",
            *indent([f"{line}," for line in self.ports[:-1]] + [self.ports[-1]]),
            ");",
            f"  typedef enum logic [{bits - 1}:0] {{{', '.join(phases)}}} phase_t;",
            "  phase_t phase;",
            "  assign done = phase == DONE;",
            "",
            *indent(memories),
            *indent(self.registers),
        ]
        for key in sorted(self.wires):
            lines += ["", f"  // {_heading(key, process)}", *indent(self.wires[key])]
        lines += ["", *indent(control), "", *indent(effects), *indent(bursts), "", *indent(machine)]
        if self.clocked:
            lines += ["", "  always_ff @(posedge clock) begin", *indent(self.clocked, 4), "  end"]
        for written in stores.values():
            if written:
                lines += ["", "  always_ff @(posedge clock) begin", *indent(written, 4), "  end"]
        return "\n".join([*lines, "endmodule", ""])

    def _bursts(self) -> list[str]:
        lines = []
        for name, burst in self.process.bursts.items():
            loop = next(loop for loop in self.process.loops if any(e.target == name for e in loop.effects))
            length = self.settled(burst.length)
            if burst.length.width != 32:
                length = f"32'({length})"
            lines += [f"assign {name}_request = {self._enter(loop)};", f"assign {name}_length = {length};"]
        return lines


def _first_of(choices: list[tuple[str, str]]) -> str:
    """The value of the first condition that holds; one of them does."""
    value = choices[-1][1]
    for condition, other in choices[-2::-1]:
        value = f"({condition}) ? {other} : {value}"
    return value


def _heading(key: tuple[str, int, int], process: Process) -> str:
    kind, where, step = key
    if kind == "setup":
        return f"before {process.loops[where].name}, step {step}"
    return f"{process.loops[where].name}, stage {step}"


def _assign(node: Node, name: str, text: str) -> str:
    width = f"[{node.width - 1}:0] " if node.width > 1 else ""
    return f"wire {width}{name} = {text};{_comment(node)}"


def _wanted(node: Node) -> str:
    """What a node is called if nothing else is: after the variable that it came from."""
    if node.op in ("read", "load"):
        return f"{node.target}_value"
    return node.name or node.op


def _wired(node: Node, reference: Callable[[Node], str]) -> str:
    """A value that costs nothing to form again wherever its parts are."""
    text = expression(node, reference)
    return f"({text})" if node.op == "not" else text


def _comment(node: Node) -> str:
    if node.location is None:
        return ""
    return f"  // {node.location.file.rsplit('/', 1)[-1]}:{node.location.line}"
