"""The stimulus file of Vitis's own simulations: launches and the Score Blocks that the NumPy model expects.

hls/vitis/tb_qk_score.cpp reads it and describes the format. A few small launches, one or two of every kind: what takes
long (stalls, random stress, real keys) is the cocotb testbench's, which runs on Vitis's Verilog as well.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tb.qk_score.cases import Launch

MAGIC = b"QKSTIM1\n"
BEAT_BYTES = 64
MAX_BEATS = 4096  # of one buffer; as in the testbench and the depth of the kernel's m_axi ports


def launches() -> list[Launch]:
    """The launches, in order: each format, pair and dual, both reductions, filters, odd sizes, illegal arguments."""
    # The model needs NumPy; the other commands of this package need only the standard library.
    from tb.qk_layout import Format
    from tb.qk_score.cases import Stimulus

    recipes = [
        Stimulus(Format.FP16_INT8, heads=1, group=3, d=64, n=1025, keep=0.5),
        Stimulus(Format.FP16_INT8, heads=1, group=8, d=256, n=65, reduce="sum"),
        Stimulus(Format.FP16_INT4, heads=5, group=4, d=96, n=130),
        Stimulus(Format.INT8, heads=2, group=4, d=128, n=257, kind="exact"),
        Stimulus(Format.INT8, heads=2, group=8, d=64, n=129),  # dual
        Stimulus(Format.INT4, heads=3, group=3, d=64, n=1024, pair=True, reduce="sum", kind="exact"),
        Stimulus(Format.INT4, heads=1, group=1, d=128, n=2049, keep=0.1),
        Stimulus(Format.FP16_INT8, heads=1, group=1, d=32, n=0),
    ]
    drawn = [recipe.launch() for recipe in recipes]
    illegal = [{"n_tokens": -1}, {"shape": 0}, {"format": 7}]
    return [*drawn, *(drawn[0].illegal(**scalars) for scalars in illegal)]


def encode(launch: Launch) -> bytes:
    """One launch as the testbench reads it."""
    buffers = [launch.query, launch.keys, launch.exps, launch.expected]
    for buffer in buffers:
        if len(buffer) % BEAT_BYTES or len(buffer) > MAX_BEATS * BEAT_BYTES:
            raise ValueError(f"{launch.name}: a buffer of {len(buffer)} bytes is not 0 to {MAX_BEATS} beats")
    scalars = (launch.n_tokens, launch.first_token, launch.shape, launch.format, launch.min_score, launch.tag)
    words = [*(scalar & 0xFFFFFFFF for scalar in scalars), *(len(buffer) // BEAT_BYTES for buffer in buffers)]
    return b"".join([struct.pack("<10I", *words), *buffers])


def write(file: Path) -> int:
    """Write the file; the number of launches in it."""
    drawn = launches()
    file.write_bytes(b"".join([MAGIC, struct.pack("<I", len(drawn)), *map(encode, drawn)]))
    return len(drawn)
