"""Loops and blocks of a function: what is a loop, in which order blocks run, and when a block is reached.

A *region* is a graph without cycles: the body of a loop, or the function outside of its loops with each loop as a
single node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import Location, RuleError
from .ir import Block, DebugLines, Function
from .straight import split_accesses


@dataclass(eq=False)
class LoopBlocks:
    """A natural loop: its header, its blocks in order, and where it stands in the source."""

    header: Block
    blocks: list[Block]
    location: Location | None

    @property
    def exits(self) -> list[tuple[Block, Block]]:
        """The edges that leave it: from, to."""
        return [(block, to) for block in self.blocks for to in block.successors if to not in self.blocks]


Unit = Block | LoopBlocks


@dataclass
class Region:
    """Nodes in topological order, with the edges between them. leaving: nodes with an edge out of the region."""

    entry: Unit
    units: list[Unit]
    predecessors: dict[Unit, list[Unit]]
    successors: dict[Unit, list[Unit]]
    leaving: set[Unit]
    guaranteed_by: dict[Unit, Unit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """guaranteed_by: the first node that is passed exactly if this one is (it dominates and is post-dominated)."""
        dominators: dict[Unit, set[Unit]] = {}
        for unit in self.units:
            above = [dominators[p] for p in self.predecessors[unit]]
            dominators[unit] = {unit} | (set.intersection(*above) if above else set())
        post: dict[Unit, set[Unit]] = {}
        for unit in reversed(self.units):
            below = [set() if unit in self.leaving else post[s] for s in self.successors[unit]]
            post[unit] = {unit} | (set.intersection(*below) if below else set())
        for unit in self.units:
            self.guaranteed_by[unit] = next(d for d in self.units if d in dominators[unit] and unit in post[d])

    def reaches(self, first: Unit, second: Unit) -> bool:
        """Whether one pass can go through both, first before second."""
        found, work = {first}, [first]
        while work:
            for unit in self.successors[work.pop()]:
                if unit not in found:
                    found.add(unit)
                    work.append(unit)
        return second in found


@dataclass
class Regions:
    """A function's outer region, its loops in order of execution, and each loop's own region."""

    outer: Region
    loops: list[LoopBlocks]
    bodies: dict[LoopBlocks, Region]


def find_regions(function: Function, lines: DebugLines, pipelined: list[tuple[Location, int]]) -> Regions:
    """Raises RuleError for nested loops, loops without PIPELINE, and loops that never end.

    pipelined: where the source has pipelined loops, with the last line of each.
    """
    order = _reverse_postorder(function.blocks[0])
    position = {block: index for index, block in enumerate(order)}
    dominators = _dominators(order)
    loops: list[LoopBlocks] = []
    loop_of: dict[Block, LoopBlocks] = {}
    for header in order:
        back = [source for source in header.predecessors if position[source] >= position[header]]
        if not back:
            continue
        if any(header not in dominators[source] for source in back):
            at = next((lines.loop(source.terminator.text) for source in back), None) or header.terminator.location
            raise RuleError("loop", "control jumps into the middle of this loop", at)
        members, work = {header}, list(back)
        while work:
            block = work.pop()
            if block not in members:
                members.add(block)
                work += block.predecessors
        at = next((lines.loop(b.terminator.text) for b in back), None) or _pipelined_at(members, pipelined)
        marked = any(lines.pipelined(b.terminator.text) for b in back) or _pipelined_at(members, pipelined)
        if any(block in loop_of for block in members):
            raise _nested(at, any(lines.unrolled(b.terminator.text) for b in back))
        if any(lines.unrolled(b.terminator.text) for b in back):
            raise RuleError("loop", "this loop cannot be unrolled: its count is not a constant", at)
        if not marked:
            raise RuleError("loop", "this loop needs #pragma HLS PIPELINE (or UNROLL, if its count is a constant)", at)
        loop = LoopBlocks(header, [b for b in order if b in members], at)
        if not loop.exits:
            raise RuleError("loop", "this loop never ends", at)
        loops.append(loop)
        loop_of.update(dict.fromkeys(members, loop))
    for block in split_accesses([block for block in order if block not in loop_of]):
        loop_of[block] = turn = LoopBlocks(block, [block], block.terminator.location)
        loops.append(turn)
    order = _reverse_postorder(function.blocks[0])
    outer = _region(order[0], order, loop_of, None)
    bodies = {loop: _region(loop.header, loop.blocks, {}, loop.header) for loop in loops}
    loops.sort(key=outer.units.index)
    return Regions(outer, loops, bodies)


def _pipelined_at(members: set[Block], pipelined: list[tuple[Location, int]]) -> Location | None:
    """The source's loop that these blocks come from. LLVM drops a loop's mark where it joins branches."""
    lines = [i.location for block in members for i in block.instructions if i.location]
    for at, last in sorted(pipelined, key=lambda loop: loop[1] - loop[0].line):
        if any(line.file == at.file and at.line <= line.line <= last for line in lines):
            return at
    return None


def _dominators(order: list[Block]) -> dict[Block, set[Block]]:
    """For each block, those that every way to it passes."""
    found = {block: set(order) for block in order}
    found[order[0]] = {order[0]}
    changed = True
    while changed:
        changed = False
        for block in order[1:]:
            passed = {block} | set.intersection(*(found[source] for source in block.predecessors))
            changed = changed or passed != found[block]
            found[block] = passed
    return found


def _nested(at: Location | None, unrolled: bool) -> RuleError:
    if unrolled:
        return RuleError("loop", "an inner loop cannot be unrolled: its count is not a constant", at)
    return RuleError("loop", "a loop inside a loop: UNROLL the inner one, or write one loop with counters", at)


def _reverse_postorder(entry: Block) -> list[Block]:
    finished: list[Block] = []
    seen = {entry}
    stack = [(entry, iter(entry.successors))]
    while stack:
        block, successors = stack[-1]
        following = next((s for s in successors if s not in seen), None)
        if following is None:
            finished.append(block)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(following.successors)))
    return finished[::-1]


def _region(entry: Block, blocks: list[Block], loop_of: dict[Block, LoopBlocks], header: Block | None) -> Region:
    unit_of: dict[Block, Unit] = {block: loop_of.get(block, block) for block in blocks}
    successors: dict[Unit, list[Unit]] = {}
    predecessors: dict[Unit, list[Unit]] = {}
    leaving: set[Unit] = set()
    for block in blocks:
        successors.setdefault(unit_of[block], [])
        predecessors.setdefault(unit_of[block], [])
    for block in blocks:
        for target in block.successors:
            if target not in unit_of or target is header:
                leaving.add(unit_of[block])
            elif unit_of[target] is not unit_of[block] and unit_of[target] not in successors[unit_of[block]]:
                successors[unit_of[block]].append(unit_of[target])
                predecessors[unit_of[target]].append(unit_of[block])
    return Region(unit_of[entry], _topological(unit_of[entry], successors), predecessors, successors, leaving)


def _topological(entry: Unit, successors: dict[Unit, list[Unit]]) -> list[Unit]:
    finished: list[Unit] = []
    seen = {entry}
    stack = [(entry, iter(successors[entry]))]
    while stack:
        unit, following = stack[-1]
        after = next((s for s in following if s not in seen), None)
        if after is None:
            finished.append(unit)
            stack.pop()
        else:
            seen.add(after)
            stack.append((after, iter(successors[after])))
    return finished[::-1]
