"""Channels that are held back: together, one at a time, hardly and almost always."""

from __future__ import annotations

from typing import Any

import cocotb

from tb.qk_layout import Format
from tb.qk_score.bench import CHANNELS, TB
from tb.qk_score.cases import Reduce, Stimulus
from tb.qk_score.suite import FULL

SIZES = (0, 1, 70, 1023, 1024, 1025, 2100)
REDUCES: tuple[Reduce, ...] = ("max", "sum")


@cocotb.test()
@cocotb.parametrize(fmt=list(Format), p=[0.1, 0.3, 0.6, 0.9])
async def all_channels(dut: Any, fmt: Format, p: float) -> None:
    """Every channel on its own in each cycle; sizes and reduces as they come."""
    tb = TB(dut)
    await tb.cycle_reset()
    for index, n in enumerate(SIZES):
        if p < 0.9 or n < 1000 or FULL:
            tb.set_stalls(p, seed=n)
            reduce = REDUCES[(index + int(10 * p)) % 2]
            await tb.run(Stimulus(fmt, 1, 4, fmt.lanes, n, reduce, seed=n, keep=0.7).launch(), offset=4032)


@cocotb.test()
@cocotb.parametrize(fmt=list(Format))
async def hardly_ever_ready(dut: Any, fmt: Format) -> None:
    """Every channel waits 98 cycles of 100."""
    tb = TB(dut)
    await tb.cycle_reset()
    for n, reduce in zip((33, 1), REDUCES, strict=True):
        tb.set_stalls(0.98, seed=n)
        await tb.run(Stimulus(fmt, 1, 4, 64, n, reduce, seed=n).launch(), offset=3968)


@cocotb.test()
@cocotb.parametrize(channel=CHANNELS)
async def one_channel(dut: Any, channel: str) -> None:
    """One channel starves while the others run: what is ahead of it fills up, what is behind it runs dry."""
    tb = TB(dut)
    await tb.cycle_reset()
    before = CHANNELS.index(channel) * len(Format)  # sizes and reduces go on from channel to channel
    for index, fmt in enumerate(Format, before):
        n, reduce = SIZES[index % len(SIZES)], REDUCES[index // 2 % 2]
        tb.set_stalls(0.7 if n > 100 and not FULL else 0.9, seed=index, channel=channel)
        await tb.run(Stimulus(fmt, 1, 3, fmt.lanes, n, reduce, seed=index).launch(), offset=64)


@cocotb.test()
@cocotb.parametrize(fmt=list(Format))
async def gusts(dut: Any, fmt: Format) -> None:
    """Long silences and long runs in turn: every buffer on the way fills and drains."""
    tb = TB(dut)
    await tb.cycle_reset()
    for index, n in enumerate(SIZES):
        tb.set_gusts(cycles=(7, 64, 300)[index % 3], seed=n)
        await tb.run(Stimulus(fmt, 1, 4, fmt.lanes, n, REDUCES[(index + fmt) % 2], seed=n).launch(), offset=1024)
