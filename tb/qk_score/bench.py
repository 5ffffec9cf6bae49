"""The device under test in its surroundings: memory behind four AXI masters, and a host at the control registers."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, SimTimeoutError, with_timeout
from cocotb.utils import get_sim_time
from cocotbext.axi import (  # type: ignore[import-untyped]
    AxiLiteBus,
    AxiLiteMaster,
    AxiRamRead,
    AxiRamWrite,
    AxiReadBus,
    AxiWriteBus,
)
from cocotbext.axi.sparse_memory import SparseMemory  # type: ignore[import-untyped]

from tb.coverage import Coverage, page_offset_class
from tb.qk_model import BEAT_BYTES, BLOCK_TOKENS, SLOT_BYTES
from tb.qk_score.cases import Launch
from tb.qk_score.native import native_blocks
from tb.rtl import CLOCK_NS, RegisterMap

COVERAGE = Coverage()  # of this simulation's process

BUNDLES = {"query": "m_axi_gmem0", "keys": "m_axi_gmem1", "exps": "m_axi_gmem2", "blocks": "m_axi_gmem3"}
CHANNELS = ["query_ar", "query_r", "keys_ar", "keys_r", "exps_ar", "exps_r", "blocks_aw", "blocks_w", "blocks_b"]
SCALARS = ("n_tokens", "first_token", "shape", "format", "min_score", "tag")
GUARD_BYTES = 4096
GUARD = bytes([0xEE]) * GUARD_BYTES

START, DONE, IDLE, READY, CONTINUE, AUTO_RESTART = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 4, 1 << 7
CONTROL, GLOBAL_INTERRUPT, INTERRUPT_ENABLE, INTERRUPT_STATUS = 0x0, 0x4, 0x8, 0xC

Pauses = Callable[[], Iterator[bool]]  # a fresh stream, one value a cycle: whether a channel is held back in it


def at_random(p: float, seed: int) -> Pauses | None:
    """Pauses of which each cycle is one with probability p, every channel's its own."""
    seeds = random.Random(seed)

    def stream() -> Iterator[bool]:
        channel = random.Random(seeds.random())
        while True:
            yield channel.random() < p

    return stream if p else None


def in_gusts(cycles: int, seed: int) -> Pauses:
    """Silences and runs in turn, up to so many cycles long each, every channel's its own."""
    seeds = random.Random(seed)

    def stream() -> Iterator[bool]:
        channel = random.Random(seeds.random())
        while True:
            for paused in (True, False):
                yield from [paused] * channel.randint(1, cycles)

    return stream


@dataclass(frozen=True)
class Buffer:
    """Where one argument of a launch lies."""

    address: int
    size: int

    @property
    def end(self) -> int:
        return self.address + self.size


Buffers = dict[str, Buffer]


class _GuardedRead(AxiRamRead):  # type: ignore[misc]
    """Memory that notes reads outside the host's buffers, and answers those of beats in ``broken`` with an error."""

    def __init__(self, bus: Any, clock: Any, reset: Any, mem: SparseMemory) -> None:
        super().__init__(bus, clock, reset, reset_active_level=False, mem=mem)
        self.allowed: list[Buffer] = []
        self.stray: list[int] = []
        self.broken: set[int] = set()

    async def _read(self, address: int, length: int) -> bytes:
        if not any(buffer.address <= address < buffer.end for buffer in self.allowed):
            self.stray.append(address)
        if address in self.broken:
            raise OSError("injected")
        return bytes(await super()._read(address, length))


class _GuardedWrite(AxiRamWrite):  # type: ignore[misc]
    """Memory that answers bursts that write to beats in ``broken`` with an error."""

    def __init__(self, bus: Any, clock: Any, reset: Any, mem: SparseMemory) -> None:
        super().__init__(bus, clock, reset, reset_active_level=False, mem=mem)
        self.broken: set[int] = set()

    async def _write(self, address: int, data: bytes) -> None:
        if address in self.broken:
            raise OSError("injected")
        await super()._write(address, data)


class TB:
    """One device under test: ``await cycle_reset()``, then ``await run(launch)`` any number of times."""

    def __init__(self, dut: Any, registers: RegisterMap | None = None) -> None:
        self.dut = dut
        self.registers = registers or RegisterMap.from_environment()
        self.memory = SparseMemory(1 << 62)  # one address space, as on the card
        Clock(dut.ap_clk, CLOCK_NS, "ns").start()
        clock, reset = dut.ap_clk, dut.ap_rst_n

        self.reads = {
            name: _GuardedRead(AxiReadBus.from_prefix(dut, BUNDLES[name]), clock, reset, self.memory)
            for name in ("query", "keys", "exps")
        }
        self.writes = _GuardedWrite(AxiWriteBus.from_prefix(dut, BUNDLES["blocks"]), clock, reset, self.memory)
        bus = AxiLiteBus.from_prefix(dut, "s_axi_control")
        self.control = AxiLiteMaster(bus, clock, reset, reset_active_level=False)
        for part in (*self.reads.values(), self.writes, self.control.write_if, self.control.read_if):
            part.log.setLevel(logging.ERROR)
        self._placed = 0
        self._slowness = 1.0  # how many times longer than without stalls a launch may take
        self._stall = "none"
        self._launch = "after reset"

    @property
    def is_open_flow(self) -> bool:
        """Whether hls2rtl made the RTL: Vitis's has no register for AXI errors, and AXI masters of its own."""
        return "axi_error" in self.registers

    # ------------------------------------------------------------------------------------------ surroundings

    def set_idle_generator(self, pauses: Pauses | None = None) -> None:
        """Hold back what the surroundings send: read data, write responses, the host's own requests."""
        host = (self.control.write_if.aw_channel, self.control.write_if.w_channel, self.control.read_if.ar_channel)
        _pause((*(ram.r_channel for ram in self.reads.values()), self.writes.b_channel, *host), pauses)

    def set_backpressure_generator(self, pauses: Pauses | None = None) -> None:
        """Hold back what the device sends: read and write requests, write data, answers to the host."""
        host = (self.control.write_if.b_channel, self.control.read_if.r_channel)
        sinks = (*(ram.ar_channel for ram in self.reads.values()), self.writes.aw_channel, self.writes.w_channel)
        _pause((*sinks, *host), pauses)

    def set_stalls(self, p: float, seed: int, channel: str = "") -> None:
        """Hold back all channels, or one of the device's such as "keys_r", each cycle with probability p."""
        self._slowness = 1 / (1 - p)
        self.set_idle_generator(at_random(0 if channel else p, seed))
        self.set_backpressure_generator(at_random(0 if channel else p, seed + 1))
        if channel:
            bundle, name = channel.split("_")
            ram = self.reads.get(bundle, self.writes)
            _pause([getattr(ram, f"{name}_channel")], at_random(p, seed))
            self._stall = "one channel"
        else:
            self._stall = "none" if not p else "p < 0.5" if p < 0.5 else "p ≥ 0.5" if p < 0.98 else "p ≥ 0.98"

    def set_gusts(self, cycles: int, seed: int) -> None:
        """Hold back all channels for up to so many cycles, and let them run for up to as many."""
        self._slowness = cycles
        self.set_idle_generator(in_gusts(cycles, seed))
        self.set_backpressure_generator(in_gusts(cycles, seed + 1))
        self._stall = "gusts"

    async def cycle_reset(self) -> None:
        """Reset, then let the host enable the interrupt of ap_done."""
        self._launch = "after reset"
        self.dut.ap_rst_n.value = 0
        await ClockCycles(self.dut.ap_clk, 5)
        self.dut.ap_rst_n.value = 1
        await ClockCycles(self.dut.ap_clk, 2)
        await self.control.write_dword(GLOBAL_INTERRUPT, 1)
        await self.control.write_dword(INTERRUPT_ENABLE, 1)

    # -------------------------------------------------------------------------------------------------- host

    def place(self, launch: Launch, offset: int = 0) -> Buffers:
        """Put the buffers of a launch into memory, each ``offset`` bytes into a 4 KiB page, guards around it.

        Every buffer is in a region of its own above 4 GiB, so that the high address bits count.
        """
        contents = {"query": launch.query, "keys": launch.keys, "exps": launch.exps}
        contents["blocks"] = bytes([0x55]) * len(launch.expected)  # neither a guard nor a padding tuple
        buffers = {}
        for name, content in contents.items():
            self._placed += 1
            buffers[name] = buffer = Buffer((self._placed << 32) + offset, len(content))
            self.memory.write(buffer.address - GUARD_BYTES, GUARD)
            self.memory.write(buffer.address, content)
            self.memory.write(buffer.end, GUARD)
        for name, ram in self.reads.items():
            ram.allowed.append(buffers[name])
        return buffers

    def next_is(self, launch: Literal["queued", "after an error"]) -> None:
        """For the coverage: what is special about when the next launch starts."""
        self._launch = launch

    async def write_arguments(self, launch: Launch, buffers: Buffers) -> None:
        """Every argument into its register, pointers as two words."""
        for name, buffer in buffers.items():
            await self.control.write_qword(self.registers[name], buffer.address)
        for name in SCALARS:
            await self.control.write_dword(self.registers[name], getattr(launch, name) & 0xFFFFFFFF)

    async def start(self, flags: int = 0) -> None:
        """Set ap_start."""
        await self.control.write_dword(CONTROL, START | flags)

    async def wait_done(self, launch: Launch) -> None:
        """Until the interrupt of ap_done; AssertionError with the state of the channels when it does not come."""
        # Far more than a launch needs, however often its channels are held back.
        beats = launch.beats + (len(launch.query) + len(launch.exps) + len(launch.expected)) // BEAT_BYTES
        cycles = int((2000 + 4 * beats) * 3 * self._slowness)
        if not self.dut.interrupt.value:
            try:
                await with_timeout(RisingEdge(self.dut.interrupt), cycles * CLOCK_NS, "ns")
            except SimTimeoutError:
                raise AssertionError(f"{launch.name}: not done after {cycles} cycles; {self._state()}") from None
        assert await self.control.read_dword(CONTROL) & DONE, f"{launch.name}: interrupt without ap_done"

    async def acknowledge(self, flags: int = 0) -> None:
        """Clear the interrupt and let the device go on (ap_continue)."""
        await self.control.write_dword(INTERRUPT_STATUS, 1)  # writing a bit toggles it
        await self.control.write_dword(CONTROL, CONTINUE | flags)

    async def run(self, launch: Launch, offset: int = 0) -> int:
        """One launch from its arguments to the check of its Score Blocks; cycles from ap_start to the interrupt."""
        buffers = self.place(launch, offset)
        await self.write_arguments(launch, buffers)
        begin = get_sim_time("ns")
        await self.start()
        await self.wait_done(launch)
        cycles = round((get_sim_time("ns") - begin) / CLOCK_NS)
        await self.acknowledge()
        self.check(launch, buffers)
        return cycles

    def check(self, launch: Launch, buffers: Buffers) -> None:
        """The Score Blocks are those of model and native library, bit for bit, and nothing else was touched or read.

        A launch that passes counts as covered.
        """
        got = bytes(self.memory.read(buffers["blocks"].address, len(launch.expected)))
        if got != launch.expected:
            raise AssertionError(f"{launch.name}: RTL and model: {first_difference(got, launch.expected)}")
        if (native := native_blocks(launch)) != got:
            raise AssertionError(f"{launch.name}: native library and RTL: {first_difference(native, got)}")
        self.check_guards(launch, buffers)
        self._cover(launch, buffers)

    def check_guards(self, launch: Launch, buffers: Buffers) -> None:
        """Nothing outside the buffers was written or read, and no input was written."""
        contents = {"query": launch.query, "keys": launch.keys, "exps": launch.exps}
        for name, buffer in buffers.items():
            before = bytes(self.memory.read(buffer.address - GUARD_BYTES, GUARD_BYTES))
            after = bytes(self.memory.read(buffer.end, GUARD_BYTES))
            within = bytes(self.memory.read(buffer.address, buffer.size))
            if not before == after == GUARD or contents.get(name, within) != within:
                raise AssertionError(f"{launch.name}: written outside the Score Blocks, in or beside {name}")
        for name, ram in self.reads.items():
            if ram.stray:
                raise AssertionError(f"{launch.name}: read outside the buffer {name}, at {ram.stray[0]:#x}")

    def _cover(self, launch: Launch, buffers: Buffers) -> None:
        offset = page_offset_class(buffers["blocks"].address % 4096)
        COVERAGE.record(launch.features | {"stall": self._stall, "page offset": offset, "launch": self._launch})
        COVERAGE.save(Path("coverage.json"))  # each time: the simulator's process ends without notice
        self._launch = "back to back"

    def handshake(self, channel: str) -> tuple[Any, Any]:
        """valid and ready of a channel of the device, such as "keys_r"."""
        bundle, name = channel.split("_")
        sides = getattr(self.reads.get(bundle, self.writes), f"{name}_channel")
        return sides.valid, sides.ready

    def _state(self) -> str:
        """Which channels wait: valid without ready, or ready without valid."""
        waiting = []
        for channel in CHANNELS:
            valid, ready = (bool(signal.value) for signal in self.handshake(channel))
            if valid != ready:
                waiting.append(f"{channel} waits for {'ready' if valid else 'valid'}")
        return "; ".join(waiting) or "no channel waits"


def _pause(channels: Iterable[Any], pauses: Pauses | None) -> None:
    for channel in channels:
        channel.set_pause_generator(pauses() if pauses else None)
        channel.pause = False


def first_difference(got: bytes, expected: bytes) -> str:
    """Where two runs of Score Blocks differ first, in the contract's words."""
    a, b = (np.frombuffer(blocks, "<u4") for blocks in (got, expected))
    where = np.flatnonzero(a != b)
    slot, word = divmod(int(where[0]), SLOT_BYTES // 4)
    place = f"tuple {word}" if word < BLOCK_TOKENS else f"trailer offset {4 * (word - BLOCK_TOKENS)}"
    return (
        f"{len(where)} of {len(a)} words differ, first in slot {slot}, {place}: "
        f"{a[where[0]]:#010x} instead of {b[where[0]]:#010x}"
    )
