"""What computes on the emulated card: the kernel's RTL under Verilator, or its C simulation, which is quicker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hillinfer.csd.abi import Launch, aligned, numbers
from hillinfer.errors import DeviceError

from .errors import EmulationError
from .memory import Memory

Run = Callable[[int, int, int, int, tuple[int, ...]], None]
"""One launch: addresses of query, keys, exps and blocks in this process, and the six scalars."""

POINTERS: Final = ("query", "keys", "exps", "blocks")
_NOTHING: Final = aligned(1)  # what a pointer points at that is not read
SCALARS: Final = ("n_tokens", "first_token", "shape", "format", "min_score", "tag")


def load(name: str) -> Run:
    """``native`` or ``rtl``. EmulationError, or the library's own error, says what is missing."""
    if name == "native":
        from hillinfer.csd import native

        return native.load().run
    if name == "rtl":
        from hillinfer.csd import rtl

        return rtl.Kernel().run_here
    raise EmulationError(f"there is no kernel {name}: native or rtl")


def launch(run: Run, memory: Memory, pointers: tuple[int, int, int, int], scalars: tuple[int, ...]) -> None:
    """Run the kernel on the card's memory; CardError when it would read what is not there, or was never written.

    The kernel itself sees nothing of this: a launch that it refuses touches one slot of blocks and nothing else.
    """
    try:
        sizes = Launch(*scalars)
        reads, writes = (sizes.query_beats, sizes.key_beats, sizes.exponent_beats), sizes.block_beats
    except DeviceError:
        reads, writes = (0, 0, 0), numbers.SLOT_BEATS
    stretches = [  # held until the run is over: the host may free a buffer, or close the device, before that
        memory.reading(address, beats * numbers.BEAT_BYTES) if beats else _NOTHING
        for address, beats in zip(pointers, reads, strict=False)
    ]
    stretches.append(memory.writing(pointers[3], writes * numbers.BEAT_BYTES))
    query, keys, exps, blocks = (stretch.ctypes.data for stretch in stretches)
    run(query, keys, exps, blocks, scalars)
