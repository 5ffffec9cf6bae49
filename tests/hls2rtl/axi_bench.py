"""cocotb tests of the kernel widen.cpp: bursts, launches, errors. test_axi.py builds and runs them."""

from __future__ import annotations

import itertools
import json
import logging
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiReadBus, AxiSlaveRead, AxiSlaveWrite, AxiWriteBus
from cocotbext.axi.address_space import MemoryRegion

_SIZE = 1 << 20
_REPORT = json.loads((Path(os.environ["WIDEN"]) / "report.json").read_text())
_OFFSET = {name: register["offset"] for name, register in _REPORT["registers"].items()}
START, DONE, IDLE, READY, CONTINUE, AUTO_RESTART = 1, 2, 4, 8, 16, 128
_GUARD = b"\xa5"


class FaultyMemory(MemoryRegion):
    """Memory that refuses accesses to some addresses; the model answers those with SLVERR."""

    def __init__(self) -> None:
        super().__init__(_SIZE)
        self.faulty: range = range(0)

    async def read(self, address: int, length: int, **kwargs: Any) -> bytes:
        self._check(address, length)
        return bytes(await super().read(address, length, **kwargs))

    async def write(self, address: int, data: bytes, **kwargs: Any) -> None:
        self._check(address, len(data))
        await super().write(address, data, **kwargs)

    def _check(self, address: int, length: int) -> None:
        if address < self.faulty.stop and self.faulty.start < address + length:
            raise ValueError("faulty address")


class Bench:
    """The kernel with memory on both bundles and a master on its control port."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        logging.getLogger("cocotb.widen").setLevel(logging.CRITICAL)
        Clock(dut.ap_clk, 10, "ns").start()
        reset = {"reset": dut.ap_rst_n, "reset_active_level": False}
        self.source, self.target = FaultyMemory(), FaultyMemory()
        self.reader = AxiSlaveRead(AxiReadBus.from_prefix(dut, "m_axi_gmem0"), dut.ap_clk, target=self.source, **reset)
        self.writer = AxiSlaveWrite(
            AxiWriteBus.from_prefix(dut, "m_axi_gmem1"), dut.ap_clk, target=self.target, **reset
        )
        self.control = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi_control"), dut.ap_clk, **reset)
        for part in (self.reader, self.writer, self.control.read_if, self.control.write_if):
            part.log.setLevel(logging.CRITICAL)

    async def reset(self) -> None:
        self.dut.ap_rst_n.value = 0
        await ClockCycles(self.dut.ap_clk, 4)
        self.dut.ap_rst_n.value = 1
        await ClockCycles(self.dut.ap_clk, 2)

    def stall(self, probability: float, seed: int) -> None:
        """Pauses every channel of both memories with this probability."""
        rng = random.Random(seed)

        def pauses() -> Iterator[bool]:
            return (rng.random() < probability for _ in itertools.count())

        channels = (self.reader.ar_channel, self.reader.r_channel, self.writer.aw_channel)
        for channel in (*channels, self.writer.w_channel, self.writer.b_channel):
            if probability:
                channel.set_pause_generator(pauses())
            else:
                channel.clear_pause_generator()
                channel.pause = False

    async def write(self, name: str, value: int) -> None:
        width = _REPORT["registers"][name]["width"]
        for word in range(width // 32):
            await self.control.write_dword(_OFFSET[name] + 4 * word, value >> 32 * word & 0xFFFFFFFF)

    async def read(self, name: str) -> int:
        return int(await self.control.read_dword(_OFFSET[name]))

    async def arguments(self, source: int, target: int, n: int, bias: int = 0) -> None:
        for name, value in (("source", source), ("target", target), ("n", n), ("bias", bias)):
            await self.write(name, value)

    async def wait(self, bit: int) -> int:
        """Polls until the control register has the bit; gives the register."""
        for _ in range(20000):
            value = await self.read("ap_ctrl")
            if value & bit:
                return value
        raise AssertionError(f"bit {bit} of ap_ctrl never came")

    async def launch(self, source: int, target: int, n: int, bias: int = 0) -> None:
        """One launch from start to acknowledgement, its result and the bytes around it checked."""
        words = [random.Random(n + k).getrandbits(32) for k in range(4 * n)]
        data = b"".join(word.to_bytes(4, "little") for word in words)
        begin = source & ~3
        self.source.mem[begin : begin + len(data)] = data
        at, length = target & ~15, 16 * n
        self.target.mem[at - 64 : at + length + 64] = _GUARD * (length + 128)
        await self.arguments(source, target, n, bias)
        await self.write("ap_ctrl", START)
        await self.wait(DONE)
        await self.write("ap_ctrl", CONTINUE)
        assert not await self.read("ap_ctrl") & DONE
        expected = b"".join(((word + bias) & 0xFFFFFFFF).to_bytes(4, "little") for word in words)
        found = bytes(self.target.mem[at - 64 : at + length + 64])
        assert found == _GUARD * 64 + expected + _GUARD * 64, f"n={n} target={target:x}"


async def _bench(dut: Any) -> Bench:
    bench = Bench(dut)
    await bench.reset()
    return bench


@cocotb.test()
async def bursts_of_every_length_round_4_kib(dut: Any) -> None:
    bench = await _bench(dut)
    places = ((0x1000, 0x1000), (0x1FFC, 0x2FF0), (0x1F04, 0x2E10), (0x2FF0, 0x3FC0))
    for n, (source, target) in itertools.product((0, 1, 2, 3, 15, 16, 17, 65, 300), places):
        await bench.launch(source, target, n, bias=n)


@cocotb.test()
async def stalls_on_every_channel(dut: Any) -> None:
    bench = await _bench(dut)
    for probability, n in ((0.3, 200), (0.7, 150), (0.95, 40)):
        bench.stall(probability, n)
        await bench.launch(0x1F80, 0x2F80, n, bias=-7)


@cocotb.test()
async def low_bits_of_addresses_are_ignored(dut: Any) -> None:
    bench = await _bench(dut)
    await bench.launch(0x1003, 0x2FFF, 20)


async def _clocks(bench: Bench, n: int) -> int:
    """From the write of ap_start to the end of a launch."""
    await bench.arguments(0x1000, 0x40000, n)
    await bench.write("ap_ctrl", START)
    clocks = 0
    while bench.dut.control.ap_done.value != 1:
        await RisingEdge(bench.dut.ap_clk)
        clocks += 1
    await bench.write("ap_ctrl", CONTINUE)
    return clocks


@cocotb.test()
async def a_beat_per_clock(dut: Any) -> None:
    bench = await _bench(dut)
    clocks = await _clocks(bench, 5000)
    dut._log.info(f"20000 beats in {clocks} clocks: {clocks / 20000:.4f} each")
    assert clocks <= 1.01 * 20000


@cocotb.test()
async def a_launch_costs_few_clocks(dut: Any) -> None:
    bench = await _bench(dut)
    empty, short = await _clocks(bench, 0), await _clocks(bench, 1)
    dut._log.info(f"a launch of nothing takes {empty} clocks, one of 4 beats {short}")
    assert empty <= 20
    assert short <= 80


@cocotb.test()
async def what_is_there_is_written_while_the_rest_is_awaited(dut: Any) -> None:
    bench = await _bench(dut)
    bench.target.mem[0x4000:0x4200] = _GUARD * 0x200
    bench.reader.r_channel.set_pause_generator(itertools.chain([False] * 120, itertools.repeat(True)))
    await bench.arguments(0x1000, 0x4000, 200)
    await bench.write("ap_ctrl", START)
    await ClockCycles(dut.ap_clk, 700)
    rows = [bytes(bench.target.mem[0x4000 + 16 * k : 0x4010 + 16 * k]) for k in range(32)]
    written = sum(row != _GUARD * 16 for row in rows)
    assert 0 < written < 32
    await ClockCycles(dut.ap_clk, 300)
    bench.reader.r_channel.clear_pause_generator()
    bench.reader.r_channel.pause = False
    await bench.wait(DONE)


@cocotb.test()
async def error_responses_are_kept_per_bundle(dut: Any) -> None:
    bench = await _bench(dut)
    bits = {bundle: 1 << bit for bundle, bit in _REPORT["axi_error_bits"].items()}
    assert await bench.read("axi_error") == 0
    for memory, bundle, place in ((bench.source, "gmem0", 0x1100), (bench.target, "gmem1", 0x2110)):
        memory.faulty = range(place, place + 1)
        await bench.arguments(0x1000, 0x2000, 100)
        await bench.write("ap_ctrl", START)
        await bench.wait(DONE)
        await bench.write("ap_ctrl", CONTINUE)
        assert await bench.read("axi_error") == bits[bundle]
        memory.faulty = range(0)
    await bench.write("axi_error", bits["gmem0"])
    assert await bench.read("axi_error") == bits["gmem1"]
    await bench.launch(0x1000, 0x2000, 10)
    assert await bench.read("axi_error") == 0


@cocotb.test()
async def launches_queue_and_each_end_is_told(dut: Any) -> None:
    bench = await _bench(dut)
    assert await bench.read("ap_ctrl") == IDLE
    data = bytes(range(256)) * 16
    bench.source.mem[0x1000 : 0x1000 + len(data)] = data
    targets = (0x8000, 0xA000, 0xC000)
    await bench.arguments(0x1000, targets[0], 256)
    await bench.write("ap_ctrl", START)
    await bench.wait(READY)  # the arguments are taken: the next ones may be written
    assert not await bench.read("ap_ctrl") & READY, "ready is cleared by reading"
    await bench.arguments(0x1000, targets[1], 256)
    await bench.write("ap_ctrl", START)
    first = await bench.wait(DONE)
    assert not first & IDLE
    await ClockCycles(dut.ap_clk, 2500)  # the second one ends, and its end waits
    assert bytes(bench.target.mem[targets[1] : targets[1] + len(data)]) == data
    await bench.arguments(0x1000, targets[2], 256)
    await bench.write("ap_ctrl", START)  # waits as long as an end is untold
    await ClockCycles(dut.ap_clk, 500)
    assert await bench.read("ap_ctrl") & START
    for _ in targets:
        assert await bench.wait(DONE)
        await bench.write("ap_ctrl", CONTINUE)
    assert not await bench.read("ap_ctrl") & (DONE | START)
    for target in targets:
        assert bytes(bench.target.mem[target : target + len(data)]) == data
    assert (await bench.read("ap_ctrl")) & ~READY == IDLE


@cocotb.test()
async def interrupts_and_auto_restart(dut: Any) -> None:
    bench = await _bench(dut)
    await bench.write("gie", 1)
    await bench.write("ier", 1)
    await bench.arguments(0x1000, 0x2000, 4)
    await bench.write("ap_ctrl", START | AUTO_RESTART)
    await bench.wait(DONE)
    assert dut.interrupt.value == 1
    assert await bench.read("isr") == 1
    await bench.write("ap_ctrl", AUTO_RESTART | CONTINUE)
    await bench.wait(DONE)  # again, without a start
    await bench.write("ap_ctrl", CONTINUE)
    for _ in range(4):
        await ClockCycles(dut.ap_clk, 300)
        await bench.write("ap_ctrl", CONTINUE)
    await bench.write("isr", 1)
    assert dut.interrupt.value == 0


@cocotb.test()
async def reset_in_the_middle(dut: Any) -> None:
    bench = await _bench(dut)
    await bench.arguments(0x1000, 0x2000, 1000)
    await bench.write("ap_ctrl", START)
    await ClockCycles(dut.ap_clk, 300)
    await bench.reset()
    await ClockCycles(dut.ap_clk, 50)
    assert await bench.read("ap_ctrl") == IDLE
    await bench.launch(0x1000, 0x2000, 30)
