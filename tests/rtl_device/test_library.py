"""The RTL as a library: right under every stall, driven by registers or by whole launches, safe where it may not go."""

from __future__ import annotations

import subprocess
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.csd import libraries, rtl
from hillinfer.csd.abi import aligned
from hillinfer.csd.rtl import Kernel, State
from hillinfer.errors import DeviceError
from tests.hls.cases import FORMATS, random_case
from tests.rtl_device.build import rtl_library

START, DONE, IDLE, READY, CONTINUE = 1, 2, 4, 8, 16
GUARD = 0xA5
MANY = 1 << 22  # cycles


class Lent:
    """A case's buffers, mapped at addresses of a card's kind; guard beats behind and before the blocks."""

    def __init__(self, case, base=1 << 32):
        (query,) = case.layout.pack_query(case.query)
        self.case = case
        self.arrays = [query, case.layout.pack_keys(case.keys), case.layout.pack_exponents(case.exponents)]
        self.blocks = aligned(case.launch.block_beats + 2)
        self.blocks[:] = GUARD
        self.addresses = [base + index * (1 << 34) for index in range(4)]
        self.launch = case.launch

    def map(self, kernel):
        for address, array in zip(self.addresses, [*self.arrays, self.blocks], strict=True):
            if array.nbytes:
                kernel.map(address, array.ctypes.data, array.nbytes, writable=array is self.blocks)
        self.addresses[3] += 64  # behind the guard

    def check(self):
        assert (self.blocks[0] == GUARD).all()
        assert (self.blocks[-1] == GUARD).all()
        assert self.blocks[1:-1].tobytes() == self.case.expected()


def _case(seed, keys="int8", tokens=200, heads=2, group=3, dim=40):
    return random_case(seed, keys, heads, group, dim, tokens)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    keys=st.sampled_from(FORMATS),
    tokens=st.sampled_from([0, 1, 63, 65, 300, 1025]),
    stall=st.sampled_from([0.0, 0.3, 0.9]),
    latency=st.sampled_from([0, 40]),
)
def test_launches_give_the_models_blocks_however_memory_stalls(library, seed, keys, tokens, stall, latency):
    kernel, lent = Kernel(library), Lent(_case(seed, keys, tokens))
    kernel.stalls(stall, latency, seed)
    lent.map(kernel)
    ran = kernel.launch(lent.addresses, lent.launch.scalars, MANY)
    assert (ran.state, ran.axi_error, kernel.fault()) == (State.DONE, 0, None)
    lent.check()
    kernel.close()


def test_cycles_are_those_of_the_benchmark(kernel):
    lent = Lent(_case(1, tokens=4000, dim=64))
    lent.map(kernel)
    first, second = (kernel.launch(lent.addresses, lent.launch.scalars, MANY) for _ in range(2))
    assert first == second
    assert lent.launch.key_beats < first.cycles < 1.01 * lent.launch.key_beats + 300


def _write(kernel, lent):
    register, library = kernel.write, kernel.library
    for name, address in zip(("query", "keys", "exps", "blocks"), lent.addresses, strict=True):
        register(library.register(name), address)
        register(library.register(name) + 4, address >> 32)
    names = ("n_tokens", "first_token", "shape", "format", "min_score", "tag")
    for name, value in zip(names, lent.launch.scalars, strict=True):
        register(library.register(name), value)
    register(library.register("control"), START)


def test_registers_queue_launches_as_a_driver_does(kernel):
    control = kernel.library.register("control")
    assert kernel.read(control) == IDLE
    assert kernel.run(1000) is State.IDLE
    first, second = Lent(_case(1)), Lent(_case(2, "int4"), base=1 << 40)
    for lent in (first, second):
        lent.map(kernel)
        _write(kernel, lent)
    assert kernel.run(10) is State.RUNNING
    assert kernel.run(MANY) is State.DONE
    assert kernel.read(control) & (DONE | READY) == DONE | READY  # run() has read the register, and hides nothing
    first.check()
    kernel.write(control, CONTINUE)
    assert kernel.run(MANY) is State.DONE
    assert kernel.run(MANY) is State.DONE
    second.check()
    kernel.write(control, CONTINUE)
    assert kernel.run(MANY) is State.IDLE
    assert kernel.read(control) & (DONE | IDLE) == IDLE


@pytest.mark.parametrize(
    ("which", "says"), [(0, "reads query"), (1, "reads keys"), (2, "reads exps"), (3, "writes blocks")]
)
def test_an_access_outside_is_an_error_of_the_card_not_of_this_process(kernel, which, says):
    lent = Lent(_case(3))
    lent.map(kernel)
    kernel.unmap(lent.addresses[which] // 4096 * 4096)
    ran = kernel.launch(lent.addresses, lent.launch.scalars, MANY)
    assert (ran.state, ran.axi_error) == (State.DONE, 1 << which)
    assert f"{says} at address 0x" in kernel.fault()
    assert kernel.fault() is None
    again = Lent(_case(4), base=1 << 50)
    again.map(kernel)
    assert kernel.launch(again.addresses, again.launch.scalars, MANY).axi_error == 0
    again.check()


def test_inputs_are_read_only_and_the_end_of_memory_is_one(kernel):
    lent = Lent(_case(3))
    kernel.map(1 << 20, lent.blocks.ctypes.data, 128, writable=True)
    for address, array in zip(lent.addresses, lent.arrays, strict=False):
        kernel.map(address, array.ctypes.data, array.nbytes, writable=False)
    lent.addresses[3] = 1 << 20
    ran = kernel.launch(lent.addresses, lent.launch.scalars, MANY)
    assert (ran.axi_error, kernel.fault()) == (
        8,
        f"the kernel writes blocks at address {(1 << 20) + 128:#x}, where it may not",
    )
    assert (lent.blocks[2:] == GUARD).all()
    lent.addresses[3] = lent.addresses[1]
    assert kernel.launch(lent.addresses, lent.launch.scalars, MANY).axi_error == 8
    np.testing.assert_array_equal(lent.arrays[1], lent.case.layout.pack_keys(lent.case.keys))


def test_a_launch_that_takes_too_long_is_forgotten_by_a_reset(kernel):
    lent = Lent(_case(5, tokens=1000))
    lent.map(kernel)
    assert kernel.launch(lent.addresses, lent.launch.scalars, 200).state is State.RUNNING
    kernel.reset()
    lent.blocks[:] = GUARD
    assert kernel.run(1000) is State.IDLE
    assert (lent.blocks == GUARD).all()
    assert kernel.launch(lent.addresses, lent.launch.scalars, MANY).state is State.DONE
    lent.check()


def test_memory_is_mapped_once(kernel):
    memory = aligned(8)
    kernel.map(4096, memory.ctypes.data, 512, writable=False)
    for address, nbytes in ((4096, 64), (4096 + 511, 1), (4000, 97), (0, 1 << 40), (1, 0), ((1 << 64) - 1, 2)):
        with pytest.raises(DeviceError, match="overlap"):
            kernel.map(address, memory.ctypes.data, nbytes, writable=False)
    kernel.map(4096 + 512, memory.ctypes.data, 64, writable=False)
    kernel.map(4032, memory.ctypes.data, 64, writable=False)
    with pytest.raises(DeviceError, match="no memory is mapped at 0x1001"):
        kernel.unmap(4097)
    kernel.unmap(4096)
    kernel.map(4100, memory.ctypes.data, 500, writable=False)


def test_memory_may_be_taken_away_while_a_launch_runs(kernel):
    lent = Lent(_case(6, tokens=20_000))
    lent.map(kernel)
    ran = []
    thread = threading.Thread(target=lambda: ran.append(kernel.launch(lent.addresses, lent.launch.scalars, MANY)))
    thread.start()
    while not ran:  # the interpreter is free: this loop turns while the kernel runs
        kernel.unmap(lent.addresses[1])
        kernel.map(lent.addresses[1], lent.arrays[1].ctypes.data, lent.arrays[1].nbytes, writable=False)
    thread.join()
    assert ran[0].state is State.DONE


def test_a_closed_kernel_says_so_and_may_be_closed_again(kernel):
    kernel.close()
    kernel.close()
    kernel.unmap(0)
    for call in (lambda: kernel.read(0), lambda: kernel.write(0, 0), lambda: kernel.run(1), kernel.reset):
        with pytest.raises(DeviceError, match="closed"):
            call()


def test_a_missing_library_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.delenv("HILLINFER_RTL", raising=False)
    monkeypatch.setattr(libraries.hillinfer, "__path__", [str(tmp_path)])
    monkeypatch.setattr(libraries, "_SOURCES", tmp_path)
    with pytest.raises(DeviceError, match="run `make rtl-device`, or name its folder in HILLINFER_RTL"):
        rtl.find_library()
    monkeypatch.setenv("HILLINFER_RTL", str(tmp_path))
    with pytest.raises(DeviceError, match="correct HILLINFER_RTL"):
        rtl.find_library()


def test_a_library_without_the_interface_is_refused(tmp_path):
    (tmp_path / "other.c").write_text("int something;")
    subprocess.run(["gcc", "-shared", "-fPIC", tmp_path / "other.c", "-o", tmp_path / rtl.LIBRARY], check=True)
    with pytest.raises(DeviceError, match="is not the library of the kernel's RTL: run `make rtl-device`"):
        rtl.Library(tmp_path / rtl.LIBRARY)


def test_a_library_of_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(rtl.numbers, "ABI_VERSION", 9)
    with pytest.raises(
        DeviceError, match="version 1 of its interface and 1 of the kernel's ABI, this package needs 1 and 9"
    ):
        rtl.Library(rtl_library())
