"""Every key format with every number of queries and head size: bit for bit, from random bits to the ends of ranges."""

from __future__ import annotations

from typing import Any, get_args

import cocotb

from tb.qk_layout import Format
from tb.qk_score.bench import TB
from tb.qk_score.cases import Reduce, Stimulus

HEAD_SIZES = (32, 64, 80, 96, 128, 256)


@cocotb.test()
@cocotb.parametrize(fmt=list(Format), d=HEAD_SIZES)
async def group_sizes(dut: Any, fmt: Format, d: int) -> None:
    """G = 1 … 8: slots, passes and banks; tokens of two tiles, so that exponents change."""
    tb = TB(dut)
    await tb.cycle_reset()
    for group in range(1, 9):
        for reduce in get_args(Reduce):
            stimulus = Stimulus(fmt, 2, group, d, 70, reduce, "exact" if group % 3 == 0 else "bits", seed=group)
            await tb.run(stimulus.launch(), offset=64 * (61 + group % 3))


@cocotb.test()
@cocotb.parametrize(fmt=list(Format), reduce=get_args(Reduce))
async def corners(dut: Any, fmt: Format, reduce: Reduce) -> None:
    """Numbers from the ends of their ranges: the largest sums, shifts of 0 and 40, saturation either way."""
    tb = TB(dut)
    await tb.cycle_reset()
    for seed in range(8):
        d = fmt.lanes * (1, 2)[seed % 2]
        await tb.run(Stimulus(fmt, 3, 4, min(d, 256), 65, reduce, "corners", disabled=0.3, seed=seed).launch())


@cocotb.test()
@cocotb.parametrize(fmt=list(Format), reduce=get_args(Reduce))
async def disabled_queries(dut: Any, fmt: Format, reduce: Reduce) -> None:
    """Some, most and all queries disabled, whatever is in their slots; banks and passes that hold none."""
    tb = TB(dut)
    await tb.cycle_reset()
    for share in (0.3, 0.8, 1.0):
        for loose in (False, True):
            await tb.run(Stimulus(fmt, 3, 3, 64, 65, reduce, disabled=share, loose=loose, seed=3).launch())
