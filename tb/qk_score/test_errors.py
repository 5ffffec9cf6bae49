"""Illegal arguments and memory that answers with errors: the kernel ends, says so, and goes on."""

from __future__ import annotations

import random
from typing import Any

import cocotb

from tb.qk_layout import Format, Geometry, argument_status
from tb.qk_model import BEAT_BYTES
from tb.qk_score.bench import BUNDLES, TB
from tb.qk_score.cases import Stimulus
from tb.qk_score.suite import FULL

LEGAL = Geometry.fit(Format.FP16_INT8, 3, 3, 64)
INT4 = int(Format.INT4)
ILLEGAL: tuple[dict[str, int], ...] = (
    {"n_tokens": -1},
    {"n_tokens": -(1 << 31)},
    {"n_tokens": (1 << 20) + 1},
    {"n_tokens": (1 << 31) - 1},
    {"shape": 0},
    {"shape": -1},
    {"shape": LEGAL.shape & ~0xF},  # no beats
    {"shape": LEGAL.shape | 0xF},  # 15 beats a group
    {"shape": LEGAL.shape & 0xFFFF},  # no groups
    {"shape": LEGAL.shape & 0xFFFF | 511 << 16},  # 511 groups
    {"shape": 2 | 1 << 8 | 129 << 16},  # 258 beats a row
    {"shape": LEGAL.shape & ~0x700},  # one bank
    {"shape": LEGAL.shape & ~0x700 | 4 << 8},  # 16 banks, which only INT4 has
    {"shape": LEGAL.shape & ~0x700 | 5 << 8},
    {"shape": LEGAL.shape | 1 << 4},  # a pair of FP16 heads
    {"shape": LEGAL.shape | 1 << 5},  # two passes over FP16 keys
    {"shape": 2 | 1 << 4 | 2 << 8 | 1 << 16, "format": INT4},  # a pair of two beats
    {"shape": 1 | 1 << 5 | 2 << 8 | 129 << 16, "format": INT4},  # 258 beats for two passes
    {"shape": LEGAL.shape | 1 << 6},
    {"shape": LEGAL.shape | 1 << 7},
    {"shape": LEGAL.shape | 1 << 11},
    {"shape": LEGAL.shape | 1 << 15},
    {"shape": LEGAL.shape | 1 << 25},
    {"shape": LEGAL.shape | -(1 << 31)},
    {"format": 1 << 2},
    {"format": 1 << 3},
    {"format": 1 << 5},
    {"format": -(1 << 31)},
    {"format": 1 << 2, "n_tokens": -1},
    {"format": 1 << 3, "shape": 0},
    {"n_tokens": -1, "shape": 0},
    {"format": -1, "n_tokens": -(1 << 31), "shape": -1},
)


@cocotb.test()
async def illegal_arguments(dut: Any) -> None:
    """Each is refused by one slot with its status, and a legal launch goes through right after it."""
    tb = TB(dut)
    await tb.cycle_reset()
    legal = Stimulus(Format.FP16_INT8, 3, 3, 64, 70).launch()
    for index, scalars in enumerate(ILLEGAL):
        tb.set_stalls((0, 0.3)[index % 2], index)
        await tb.run(legal.illegal(**scalars), offset=4032)
        if FULL or index % 4 == 0:
            await tb.run(legal)


@cocotb.test()
async def any_scalars(dut: Any) -> None:
    """Random bits in n, shape and format: mostly illegal, and never the end of the kernel."""
    tb = TB(dut)
    await tb.cycle_reset()
    legal = Stimulus(Format.INT8, 2, 2, 64, 70).launch()
    rng = random.Random(7)
    for _ in range(200 if FULL else 60):
        scalars = {"n_tokens": rng.choice([70, rng.getrandbits(32) - (1 << 31)])}
        scalars["shape"] = rng.choice([legal.shape, legal.shape ^ 1 << rng.randrange(32), rng.getrandbits(32)])
        scalars["format"] = rng.choice([2, 2 ^ 1 << rng.randrange(2, 32), rng.getrandbits(32)])
        if argument_status(scalars["n_tokens"], scalars["shape"], scalars["format"]):
            await tb.run(legal.illegal(**scalars))
    await tb.run(legal)


@cocotb.test()
@cocotb.parametrize(bundle=["query", "keys", "exps", "blocks"], p=[0.0, 0.4])
async def memory_errors(dut: Any, bundle: str, p: float) -> None:
    """A beat that memory answers with SLVERR: the launch ends, axi_error names the bundle, the next launch is sound."""
    tb = TB(dut)
    await tb.cycle_reset()
    if not tb.is_open_flow:
        dut._log.info("this RTL has no axi_error register: nothing to check")
        return
    error, bit = tb.registers["axi_error"], 1 << list(BUNDLES).index(bundle)
    for seed, position in enumerate((0, 0.5, 1)):
        tb.set_stalls(p, seed)
        launch = Stimulus(Format(seed), 2, 3, 64, 1100, seed=seed).launch()
        buffers = tb.place(launch, offset=3968)
        last_beat = buffers[bundle].size // BEAT_BYTES - 1
        ram = tb.reads.get(bundle, tb.writes)
        ram.broken = {buffers[bundle].address + BEAT_BYTES * round(position * last_beat)}
        await tb.write_arguments(launch, buffers)
        await tb.start()
        await tb.wait_done(launch)
        assert await tb.control.read_dword(error) == bit
        await tb.acknowledge()
        tb.check_guards(launch, buffers)
        ram.broken = set()

        if seed == 0:
            await tb.control.write_dword(error, bit)  # by hand; otherwise the next launch clears it
            assert await tb.control.read_dword(error) == 0
        tb.next_is("after an error")
        await tb.run(launch)
        assert await tb.control.read_dword(error) == 0
