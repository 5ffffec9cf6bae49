"""What a process is once its code has been read: loops with effects, the arrays they use, and the ports they need."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .errors import Location
from .graph import Graph, Node

EffectKind = Literal["read", "write", "load", "store"]


@dataclass(eq=False)
class Memory:
    """A local array, or one bank of it. synchronous: read through a register, as block RAM is."""

    name: str
    depth: int
    width: int = 0
    location: Location | None = None
    synchronous: bool = False


@dataclass(eq=False)
class Effect:
    """Something that a turn of a loop does when its predicate holds."""

    kind: EffectKind
    target: str  # stream or memory
    predicate: Node
    location: Location | None
    result: Node | None = None  # of read and load
    data: Node | None = None  # of write and store
    address: Node | None = None  # of load and store
    stage: int = 0


@dataclass(eq=False)
class Loop:
    """A pipelined loop. guard: whether it is entered; proceed: whether another turn follows the present one."""

    index: int
    name: str
    location: Location | None
    guard: Node
    proceed: Node
    states: list[Node] = field(default_factory=list)  # args: value before the first turn, value after each turn
    effects: list[Effect] = field(default_factory=list)
    stages: int = 1
    critical: float = 0.0  # ns: the longest path of a stage, by the delay model
    nodes: list[Node] = field(default_factory=list)  # those that are needed, in order of dependence

    def of(self, kind: str, target: str) -> list[Effect]:
        return [effect for effect in self.effects if effect.kind == kind and effect.target == target]


@dataclass(eq=False)
class Burst:
    """The accesses of one loop to an m_axi pointer: p[0] .. p[length - 1], in order."""

    port: str
    direction: Literal["read", "write"]
    width: int
    length: Node
    location: Location | None


@dataclass(eq=False)
class Process:
    name: str
    symbol: str
    location: Location | None
    graph: Graph
    parameters: list[str] = field(default_factory=list)  # in order of declaration
    scalars: dict[str, int] = field(default_factory=dict)  # name -> width
    reads: dict[str, int] = field(default_factory=dict)  # stream or pointer -> width
    writes: dict[str, int] = field(default_factory=dict)
    widths: dict[str, int] = field(default_factory=dict)  # of reads and writes as declared, before trimming
    memories: dict[str, Memory] = field(default_factory=dict)
    bursts: dict[str, Burst] = field(default_factory=dict)
    loops: list[Loop] = field(default_factory=list)
    setup: list[Node] = field(default_factory=list)  # nodes of no loop that are needed, in order of dependence
    setup_steps: list[int] = field(default_factory=list)  # per segment: clock cycles before that loop
    warnings: list[str] = field(default_factory=list)
