"""Throughput and latency as the surroundings see them, with memory that never waits."""

from __future__ import annotations

from typing import Any

import cocotb
from cocotb.triggers import RisingEdge
from cocotb.utils import get_sim_time

from tb.qk_layout import Format
from tb.qk_score.bench import TB
from tb.qk_score.cases import Stimulus
from tb.qk_score.suite import FULL
from tb.rtl import CLOCK_NS

# heads, group, d (0: a whole beat), cycles per key beat: the goals of kernel.md
ROWS = {"many_beats": (8, 4, 128, 1.01), "one_beat": (1, 4, 0, 1.03), "two_passes": (2, 8, 128, 2.01)}
# The casts have eight query slots: with them a second pass is never needed.
RATES = [(fmt, rows) for fmt in Format for rows in ROWS if fmt.stored or rows != "two_passes"]
# Asserted of the open flow's AXI masters; Vitis's add what they add, which is reported.
FIXED = 300  # cycles of a launch that are not key beats
LATENCY = 190  # cycles from the last key to the last trailer: read-ahead, pipeline, and the 65 beats of a block


@cocotb.test()
@cocotb.parametrize((("fmt", "rows"), RATES))
async def cycles_per_beat(dut: Any, fmt: Format, rows: str) -> None:
    """What each further key beat costs, and what a launch costs apart from them."""
    heads, group, d, goal = ROWS[rows]
    tb = TB(dut)
    await tb.cycle_reset()
    stimulus = Stimulus(fmt, heads, group, d or fmt.lanes, 0)
    per_row = stimulus.geometry().row_beats  # key beats, however often each is used
    beats = [most // per_row * per_row for most in ((4_000, 24_000) if FULL else (1_000, 5_000))]
    cycles = []
    for count in beats:
        launch = Stimulus(fmt, heads, group, d or fmt.lanes, count // per_row).launch()
        cycles.append(await tb.run(launch))
    rate = (cycles[1] - cycles[0]) / (beats[1] - beats[0])
    fixed = cycles[0] - rate * beats[0]
    dut._log.info("%s, %s: %.4f cycles per beat, %.0f per launch", fmt.name, rows, rate, fixed)
    assert rate <= goal, f"{rate:.4f} cycles per key beat, the goal is {goal}"
    assert fixed <= FIXED or not tb.is_open_flow, (
        f"{fixed:.0f} cycles per launch apart from its key beats, the goal is {FIXED}"
    )


@cocotb.test()
@cocotb.parametrize(fmt=list(Format))
async def last_key_to_last_trailer(dut: Any, fmt: Format) -> None:
    """The last block of a launch is written as soon as its last key has come."""
    tb = TB(dut)
    await tb.cycle_reset()
    beats: dict[str, float] = {}

    async def watch(name: str) -> None:
        valid, ready = tb.handshake(name)
        while True:
            await RisingEdge(dut.ap_clk)
            if valid.value and ready.value:
                beats[name] = get_sim_time("ns")

    watching = [cocotb.start_soon(watch(name)) for name in ("keys_r", "blocks_w")]
    await tb.run(Stimulus(fmt, 8, 4, 128, 300).launch())
    for task in watching:
        task.cancel()
    latency = (beats["blocks_w"] - beats["keys_r"]) / CLOCK_NS
    dut._log.info("%s: %.0f cycles from the last key to the last trailer", fmt.name, latency)
    assert latency <= LATENCY or not tb.is_open_flow, (
        f"{latency:.0f} cycles from the last key to the last trailer, the limit is {LATENCY}"
    )


@cocotb.test()
async def first_trailer_does_not_wait(dut: Any) -> None:
    """A block's trailer leaves when the block is scored, not when a write burst is full."""
    tb = TB(dut)
    await tb.cycle_reset()
    keys_taken, trailer_at = 0, 0
    per_row, written = 32, 0
    launch = Stimulus(Format.FP16_INT8, 8, 4, 128, 1100).launch()
    keys, blocks = tb.handshake("keys_r"), tb.handshake("blocks_w")

    async def watch() -> None:
        nonlocal keys_taken, trailer_at, written
        while written < 65:
            await RisingEdge(dut.ap_clk)
            keys_taken += bool(keys[0].value and keys[1].value)
            written += bool(blocks[0].value and blocks[1].value)
        trailer_at = keys_taken

    task = cocotb.start_soon(watch())
    await tb.run(launch)
    await task
    late = trailer_at - 1024 * per_row
    assert late <= LATENCY, f"block 0's trailer came {late} key beats after its last key"
