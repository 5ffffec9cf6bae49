"""Accesses outside of loops: each stretch of code that has some becomes a loop of one turn.

Such code is written by hand, or left behind by LLVM where a loop turns out to run once.
"""

from __future__ import annotations

from collections.abc import Iterable

from .ir import Block, Instruction

_ACCESSES = ("load", "store")


def split_accesses(blocks: Iterable[Block]) -> list[Block]:
    """Cuts the blocks before and after their accesses, and gives the new blocks that hold these."""
    turns: list[Block] = []
    for block in blocks:
        rest = block
        while any(i.opcode in _ACCESSES for i in rest.instructions):
            start, stop = _stretch(rest)
            turn = _cut(rest, start)
            rest = _cut(turn, stop - start)
            turns.append(turn)
    return turns


def _stretch(block: Block) -> tuple[int, int]:
    """From the first access up to the last before one that a stream has already had."""
    used: set[object] = set()
    start, stop = -1, -1
    for number, i in enumerate(block.instructions):
        if i.opcode not in _ACCESSES:
            continue
        pointer = i.operands[-1]
        if i.volatile and pointer in used:
            break
        used.add(pointer)
        start = number if start < 0 else start
        stop = number + 1
    return start, stop


def _cut(block: Block, at: int) -> Block:
    """Moves what follows an instruction into a block of its own, which control enters next."""
    rest = Block(f"{block.name}_rest", block.instructions[at:], block.successors, [block])
    for instruction in rest.instructions:
        instruction.block = rest
    for target in rest.successors:
        target.predecessors = [rest if source is block else source for source in target.predecessors]
        for phi in target.instructions:
            phi.incoming = [rest if source is block else source for source in phi.incoming]
    at_line = block.instructions[at].location
    block.instructions = [*block.instructions[:at], Instruction("br", "", None, "void", block, "br", at_line)]
    block.successors = [rest]
    return rest
