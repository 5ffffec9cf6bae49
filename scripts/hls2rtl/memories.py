"""Which local arrays become block RAM, read through a register, and which stay small memories read at once."""

from __future__ import annotations

from .process import Loop, Process

_BLOCK_RAM_BITS = 4096  # below, LUT memory is cheaper
_BLOCK_RAM_DEPTH = 64
_LARGE_BITS = 32768  # as LUT memory, some 1000 LUTs


def choose_memories(process: Process) -> None:
    """A block RAM has one read and one write port here: at most one load and one store in a turn of any loop."""
    for memory in process.memories.values():
        large = memory.depth >= _BLOCK_RAM_DEPTH and memory.depth * memory.width >= _BLOCK_RAM_BITS
        memory.synchronous = large and all(_allows(loop, memory.name) for loop in process.loops)


def warn_of_large(process: Process) -> None:
    """Once it is known which memories had to be read at once: those take LUTs by the thousand."""
    for memory in process.memories.values():
        bits = memory.depth * memory.width
        if not memory.synchronous and bits > _LARGE_BITS:
            process.warnings.append(f"{memory.name} ({memory.depth} x {memory.width} bits) is no block RAM")


def _allows(loop: Loop, memory: str) -> bool:
    return len(loop.of("load", memory)) <= 1 and len(loop.of("store", memory)) <= 1
