"""Numbers of tokens around tiles and blocks, rows of one beat to 256, buffers anywhere in a page."""

from __future__ import annotations

from typing import Any

import cocotb

from tb.qk_layout import Format
from tb.qk_score.bench import TB
from tb.qk_score.cases import Stimulus
from tb.qk_score.suite import FULL

BLOCK_EDGES = (0, 1, 1023, 1024, 1025, 2049)
TILE_EDGES = (2, 63, 64, 65, 127, 128, 129)

# format, heads, group, d, pair: what the smallest and the widest rows need
ROWS = (
    (Format.FP16_INT8, 1, 1, 32, False),  # one beat, one exponent a beat
    (Format.FP16_INT8, 64, 2, 32, False),
    (Format.FP16_INT8, 65, 1, 32, False),  # exponents of a tile in two beats
    (Format.FP16_INT8, 256, 1, 32, False),
    (Format.FP16_INT4, 32, 8, 256, False),  # 8 beats a group
    (Format.FP16_INT8, 3, 2, 160, False),
    (Format.FP16_INT8, 3, 2, 192, False),
    (Format.FP16_INT8, 2, 2, 224, False),
    (Format.INT8, 1, 4, 64, False),
    (Format.INT8, 256, 4, 64, False),
    (Format.INT8, 32, 8, 256, False),  # 128 beats for two passes
    (Format.INT8, 5, 3, 32, True),  # the third pair has a zero head
    (Format.INT4, 1, 1, 128, False),
    (Format.INT4, 255, 4, 128, False),
    (Format.INT4, 65, 5, 128, False),
    (Format.INT4, 9, 4, 64, True),
    (Format.INT4, 4, 8, 64, True),  # a quarter of d = 128: two 32-lane heads a half beat
)


@cocotb.test()
@cocotb.parametrize(fmt=list(Format), reduce=["max", "sum"])
async def block_edges(dut: Any, fmt: Format, reduce: Any) -> None:
    """Tokens around one block and two, in rows of one or two beats."""
    tb = TB(dut)
    await tb.cycle_reset()
    for n in BLOCK_EDGES:
        heads = 2 if FULL else 1
        await tb.run(Stimulus(fmt, heads, 2, fmt.lanes, n, reduce, seed=n).launch(), offset=64 * (n % 64))


@cocotb.test()
@cocotb.parametrize(fmt=list(Format))
async def tile_edges(dut: Any, fmt: Format) -> None:
    """Tokens around one tile and two: the exponent changes with the tile."""
    tb = TB(dut)
    await tb.cycle_reset()
    for n in TILE_EDGES:
        await tb.run(Stimulus(fmt, 3, 3, 64, n, "sum", seed=n).launch(), offset=4032)


@cocotb.test()
@cocotb.parametrize(row=range(len(ROWS)))
async def rows(dut: Any, row: int) -> None:
    """Rows of 1 to 256 beats, 1 to 8 beats a group, up to 256 groups, pairs and second passes."""
    tb = TB(dut)
    await tb.cycle_reset()
    fmt, heads, group, d, pair = ROWS[row]
    sizes = (130, 66) if FULL else (66,)
    for n in sizes:
        for reduce in ("max", "sum") if FULL else (("max", "sum")[row % 2],):
            await tb.run(Stimulus(fmt, heads, group, d, n, reduce, pair=pair, seed=row).launch(), offset=64 * row)


@cocotb.test()
async def page_offsets(dut: Any) -> None:
    """Buffers that begin at each beat of the last and first few of a page: bursts must not cross it."""
    tb = TB(dut)
    await tb.cycle_reset()
    offsets = range(0, 4096, 64) if FULL else (0, 64, 128, 1024, 2048, 3008, 3904, 3968, 4032)
    for offset in offsets:
        await tb.run(Stimulus(Format.FP16_INT8, 3, 3, 64, 40, seed=offset).launch(), offset)


@cocotb.test()
async def long_run(dut: Any) -> None:
    """More blocks than any buffer on the way holds: every counter of tokens, tiles and blocks runs on."""
    tb = TB(dut)
    await tb.cycle_reset()
    n = 20_000 if FULL else 5_000
    await tb.run(Stimulus(Format.INT4, 1, 4, 128, n, "sum", first_token=1 << 20, tag=0xFFFFFFFF, seed=5).launch(), 4032)
