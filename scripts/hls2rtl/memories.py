"""Which local arrays become block RAM, read through a register, and which stay small memories read at once."""

from __future__ import annotations

from .process import Loop, Process

_BLOCK_RAM_BITS = 4096  # below, LUT memory is cheaper
_BLOCK_RAM_DEPTH = 64


def choose_memories(process: Process) -> None:
    """A block RAM has one read and one write port here, and in any loop is either read or written."""
    for memory in process.memories.values():
        large = memory.depth >= _BLOCK_RAM_DEPTH and memory.depth * memory.width >= _BLOCK_RAM_BITS
        memory.synchronous = large and all(_allows(loop, memory.name) for loop in process.loops)


def _allows(loop: Loop, memory: str) -> bool:
    loads, stores = loop.of("load", memory), loop.of("store", memory)
    if stores and loads:
        return False
    return len(loads) <= 1 and len(stores) <= 1
