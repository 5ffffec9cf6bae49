"""The device process without XRT: this test is the host."""

from __future__ import annotations

import queue
import socket
import struct
import threading
import time

import pytest

from hillinfer.csd import native
from scripts.hw_emu import compute_unit, messages, wire
from scripts.hw_emu.device import Device
from scripts.hw_emu.errors import CardError
from scripts.hw_emu.faults import Faults
from scripts.hw_emu.kernels import POINTERS, SCALARS
from scripts.hw_emu.messages import Api
from tests.hw_emu.cards import Example, example

REGISTERS = {name: 0x10 + 12 * place for place, name in enumerate((*POINTERS, *SCALARS))}
BASE = 0x1800000
ADDRESSES = tuple(0x4000_0000 + (place << 20) for place in range(4))


class Host:
    """A device in a thread of this process, and the calls that XRT makes to it."""

    def __init__(self, faults: Faults | None = None) -> None:
        self.broken: queue.SimpleQueue[Exception] = queue.SimpleQueue()
        self.closed = threading.Event()
        here, there = socket.socketpair()
        self.wire, self.end = wire.Wire(here), here
        device = Device(native.load().run, REGISTERS, BASE, faults or Faults(), self.broken.put)
        self._thread = threading.Thread(target=device.serve, args=(wire.Wire(there), self.closed.set))
        self._thread.start()

    def call(self, api: Api, **fields):
        self.wire.call(api, messages.call(api, **fields).SerializeToString())
        return messages._CLASSES[f"{api.name}_ANSWER"].FromString(self.wire.receive_answer())

    def put(self, launch: Example) -> None:
        for address, operand in zip(ADDRESSES, launch.operands, strict=False):
            self.call(Api.ALLOCATE, address=address, size=operand.size)
            self.call(Api.TO_DEVICE, address=address, data=operand.tobytes(), size=operand.size)
        self.call(Api.ALLOCATE, address=ADDRESSES[3], size=launch.blocks.size)

    def start(self, launch: Example) -> None:
        for name, address in zip(POINTERS, ADDRESSES, strict=True):
            self.write(REGISTERS[name], struct.pack("<Q", address))
        for name, value in zip(SCALARS, launch.launch.scalars, strict=True):
            self.write(REGISTERS[name], struct.pack("<i", value))
        self.write(0, struct.pack("<I", compute_unit.AP_START))

    def write(self, offset: int, data: bytes) -> None:
        assert self.call(Api.WRITE_REGISTERS, address=BASE + offset, size=len(data), data=data).valid

    def read(self, offset: int = 0) -> int:
        return struct.unpack("<I", self.call(Api.READ_REGISTERS, address=BASE + offset, size=4).data)[0]

    def done(self, seconds: float = 60.0) -> bool:
        end = time.monotonic() + seconds
        while not self.read() & compute_unit.AP_DONE:
            if time.monotonic() > end:
                return False
        self.write(0, struct.pack("<I", compute_unit.AP_CONTINUE))
        return True

    def blocks(self, launch: Example) -> bytes:
        return self.call(Api.FROM_DEVICE, address=ADDRESSES[3], size=launch.blocks.size).data

    def leave(self) -> None:
        self.end.close()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def host():
    made: list[Host] = []

    def make(**faults: int) -> Host:
        made.append(Host(Faults(**faults)))
        return made[-1]

    yield make
    for each in made:
        each.leave()


def test_a_launch_gives_what_the_kernel_gives(host):
    card, launch = host(), example()
    card.put(launch)
    card.start(launch)
    assert card.done()
    assert card.read() == compute_unit.AP_IDLE
    assert card.blocks(launch) == launch.blocks.tobytes()


def test_one_write_may_hold_all_registers_and_the_start(host):
    card, launch = host(), example(tokens=2000, tag=-5)
    card.put(launch)
    words = [0] * (max(REGISTERS.values()) // 4 + 2)
    for name, address in zip(POINTERS, ADDRESSES, strict=True):
        words[REGISTERS[name] // 4 : REGISTERS[name] // 4 + 2] = address & 0xFFFFFFFF, address >> 32
    for name, value in zip(SCALARS, launch.launch.scalars, strict=True):
        words[REGISTERS[name] // 4] = value & 0xFFFFFFFF
    words[0] = compute_unit.AP_START
    card.write(0, struct.pack(f"<{len(words)}I", *words))
    assert card.done()
    assert card.blocks(launch) == launch.blocks.tobytes()


def test_a_copy_is_made_at_its_offset(host):
    card = host()
    card.call(Api.ALLOCATE, address=ADDRESSES[0], size=4096)
    card.call(Api.TO_DEVICE, address=ADDRESSES[0], data=b"a" * 64, size=64, offset=128)
    assert card.call(Api.FROM_DEVICE, address=ADDRESSES[0], size=64, offset=128).data == b"a" * 64


def test_keys_that_were_never_written_break_the_card(host):
    card, launch = host(), example()
    card.put(launch)
    card.call(Api.FREE, address=ADDRESSES[1])
    card.call(Api.ALLOCATE, address=ADDRESSES[1], size=launch.operands[1].size)
    card.start(launch)
    why = card.broken.get(timeout=60)
    assert isinstance(why, CardError)
    assert "never written" in str(why)
    assert not card.done(0.1)


def test_a_refused_launch_reads_nothing_and_writes_one_slot(host):
    card = host()
    launch = example()
    card.call(Api.ALLOCATE, address=ADDRESSES[3], size=launch.blocks.size)
    illegal = example()
    object.__setattr__(illegal.launch, "shape", 0)
    card.start(illegal)
    assert card.done()
    assert card.blocks(launch)[4096:4100] == b"QKS1"
    assert card.broken.empty()


def test_a_launch_that_hangs_ends_when_its_buffers_go(host):
    card, launch = host(hang_after=1), example()
    card.put(launch)
    card.start(launch)
    assert card.done()
    card.start(launch)
    assert not card.done(0.1)
    assert card.blocks(launch) == launch.blocks.tobytes()
    card.call(Api.FREE, address=ADDRESSES[3])
    assert card.done()


def test_launches_that_are_skipped_write_nothing(host):
    card, launch = host(skip_after=0), example()
    card.put(launch)
    card.call(Api.TO_DEVICE, address=ADDRESSES[3], data=bytes(launch.blocks.size), size=launch.blocks.size)
    card.start(launch)
    assert card.done()
    assert card.blocks(launch) == bytes(launch.blocks.size)


def test_closing_is_told_before_it_is_answered(host):
    card = host()
    assert card.call(Api.SETUP).success
    assert card.call(Api.CLOSE).valid
    assert card.closed.is_set()
