"""The control registers as XRT uses them: ap_ctrl_chain, queued launches, interrupts, reset in the middle."""

from __future__ import annotations

import random
from typing import Any

import cocotb
from cocotb.triggers import ClockCycles

from tb.qk_layout import Format
from tb.qk_score.bench import (
    AUTO_RESTART,
    CONTINUE,
    CONTROL,
    DONE,
    GLOBAL_INTERRUPT,
    IDLE,
    INTERRUPT_ENABLE,
    INTERRUPT_STATUS,
    SCALARS,
    START,
    TB,
)
from tb.qk_score.cases import Launch, Stimulus
from tb.qk_score.suite import FULL


def some_launch(seed: int, n: int = 150) -> Launch:
    """A launch like no other: the seed is its format, its tag and its place in the sequence."""
    fmt = Format(seed % 4)
    return Stimulus(fmt, 2, 3, 64, n + seed, first_token=64 * seed, tag=1000 + seed, seed=seed).launch()


@cocotb.test()
async def registers_hold_what_was_written(dut: Any) -> None:
    """Every argument reads back, both words of a pointer; a part of a word can be written."""
    tb = TB(dut)
    await tb.cycle_reset()
    rng = random.Random(1)
    values = {name: rng.randrange(1 << 64) for name in ("query", "keys", "exps", "blocks")}
    values |= {name: rng.randrange(1 << 32) for name in SCALARS}
    sizes = {name: 4 if name in SCALARS else 8 for name in values}
    for name, value in values.items():
        await tb.control.write(tb.registers[name], value.to_bytes(sizes[name], "little"))
    for name, value in values.items():
        read = await tb.control.read(tb.registers[name], sizes[name])
        assert int.from_bytes(read.data, "little") == value, name
    await tb.control.write(tb.registers["tag"], b"\xa5\x5a")  # two of a word's four bytes
    assert await tb.control.read_dword(tb.registers["tag"]) == values["tag"] & ~0xFFFF | 0x5AA5


@cocotb.test()
async def life_of_a_launch(dut: Any) -> None:
    """Idle; started; done, and still done until the host says ap_continue; idle again."""
    tb = TB(dut)
    await tb.cycle_reset()
    launch = some_launch(1)
    buffers = tb.place(launch)
    assert await tb.control.read_dword(CONTROL) == IDLE
    await tb.write_arguments(launch, buffers)
    assert await tb.control.read_dword(CONTROL) == IDLE, "started by its arguments"
    await tb.start()
    assert not await tb.control.read_dword(CONTROL) & (IDLE | DONE)
    await tb.wait_done(launch)
    for _ in range(3):
        control = await tb.control.read_dword(CONTROL)
        assert control & (DONE | START) == DONE, "ap_done lasts until ap_continue"
        await ClockCycles(dut.ap_clk, 20)
    tb.check(launch, buffers)
    await tb.acknowledge()
    await ClockCycles(dut.ap_clk, 5)
    assert await tb.control.read_dword(CONTROL) == IDLE


@cocotb.test()
@cocotb.parametrize(p=[0.0, 0.4])
async def back_to_back(dut: Any, p: float) -> None:
    """Launches of all formats and shapes, one after the other without a reset, leave nothing behind."""
    tb = TB(dut)
    await tb.cycle_reset()
    for seed in range(32 if FULL else 12):
        tb.set_stalls(p, seed)
        await tb.run(some_launch(seed, n=(0, 1, 60, 1020)[seed // 4 % 4]), offset=64 * seed)


@cocotb.test()
@cocotb.parametrize(patience=[0, 30, 3000], p=[0.0, 0.3])
async def queued(dut: Any, patience: int, p: float) -> None:
    """The next launch is queued as soon as one is taken up, and each one's ap_done waits for ap_continue."""
    tb = TB(dut)
    await tb.cycle_reset()
    tb.set_stalls(p, patience)
    launches = [some_launch(seed) for seed in range(5)]
    placed = [tb.place(launch, offset=64 * index) for index, launch in enumerate(launches)]

    async def queue(index: int) -> None:
        for _ in range(100_000):
            if not await tb.control.read_dword(CONTROL) & START:
                break
        else:
            raise AssertionError(f"{launches[index].name}: ap_start never fell, the launch before was not taken up")
        await tb.write_arguments(launches[index], placed[index])
        await tb.start()

    await queue(0)
    for index, launch in enumerate(launches):
        more = index + 1 < len(launches)
        ahead = cocotb.start_soon(queue(index + 1)) if more else None
        await tb.wait_done(launch)
        await ClockCycles(dut.ap_clk, patience)
        tb.check(launch, placed[index])
        tb.next_is("queued")
        await tb.acknowledge()
        if ahead:
            await ahead


@cocotb.test()
async def interrupts(dut: Any) -> None:
    """No interrupt unless enabled; the status is cleared by writing it; ap_ready has one of its own."""
    tb = TB(dut)
    await tb.cycle_reset()

    async def run(enable: int, everything: int) -> tuple[bool, int]:
        await tb.control.write_dword(GLOBAL_INTERRUPT, everything)
        await tb.control.write_dword(INTERRUPT_ENABLE, enable)
        launch = some_launch(2, n=5)
        buffers = tb.place(launch)
        await tb.write_arguments(launch, buffers)
        await tb.start()
        for _ in range(10_000):
            if await tb.control.read_dword(CONTROL) & DONE:
                break
        await ClockCycles(dut.ap_clk, 5)
        raised, status = bool(dut.interrupt.value), await tb.control.read_dword(INTERRUPT_STATUS)
        await tb.control.write_dword(INTERRUPT_STATUS, status)  # writing a bit toggles it
        await tb.control.write_dword(CONTROL, CONTINUE)
        await ClockCycles(dut.ap_clk, 5)
        assert not dut.interrupt.value
        assert not await tb.control.read_dword(INTERRUPT_STATUS)
        tb.check(launch, buffers)
        return raised, status

    assert await run(enable=1, everything=1) == (True, 1)
    assert await run(enable=1, everything=0) == (False, 1)
    assert await run(enable=0, everything=1) == (False, 0)
    assert await run(enable=2, everything=1) == (True, 2)
    assert await run(enable=3, everything=1) == (True, 3)


@cocotb.test()
async def restarts_by_itself(dut: Any) -> None:
    """auto_restart: the same launch again and again until the bit is cleared."""
    tb = TB(dut)
    await tb.cycle_reset()
    launch = some_launch(3, n=20)
    buffers = tb.place(launch)
    await tb.write_arguments(launch, buffers)
    await tb.start(AUTO_RESTART)
    for _ in range(3):
        await tb.wait_done(launch)
        tb.check(launch, buffers)
        tb.memory.write(buffers["blocks"].address, bytes(len(launch.expected)))
        await tb.acknowledge(AUTO_RESTART)
    await tb.control.write_dword(CONTROL, 0)
    for _ in range(4):  # those under way: one, or two where launches overlap
        await ClockCycles(dut.ap_clk, 1000)
        if await tb.control.read_dword(CONTROL) & IDLE:
            break
        await tb.acknowledge()
    else:
        raise AssertionError("restarted after auto_restart was cleared")


@cocotb.test()
@cocotb.parametrize(cycles=[3, 40, 90, 200, 500])
async def reset_in_the_middle(dut: Any, cycles: int) -> None:
    """A reset ends a launch wherever it is; the next one starts clean."""
    tb = TB(dut)
    await tb.cycle_reset()
    for seed, fmt in enumerate(Format):
        doomed = Stimulus(fmt, 2, 4, 128, 1100, seed=seed).launch()
        await tb.write_arguments(doomed, tb.place(doomed))
        await tb.start()
        await ClockCycles(dut.ap_clk, cycles)
        await tb.cycle_reset()
        assert await tb.control.read_dword(CONTROL) == IDLE
        await tb.run(some_launch(seed))
