"""The kernel's RTL in this process: the library that `make rtl-device` builds (scripts/rtl_device/qk_rtl.h).

A ``Kernel`` is a card of one compute unit, down to its control registers and to each clock cycle, without memory of its
own: it reaches what is mapped. Its functions let go of the interpreter, so that other threads run beside it.
"""

from __future__ import annotations

import ctypes
import enum
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hillinfer.csd import libraries
from hillinfer.csd.abi import Launch, numbers
from hillinfer.errors import DeviceError

LIBRARY = "libqk_rtl.so"
_VERSION = 1  # QK_RTL_VERSION
_FIXED_CYCLES, _CYCLES_PER_BEAT = 1 << 20, 64  # of a launch's deadline; it takes one cycle or two for a beat
_BUILD_AGAIN = "run `make rtl-device`"


class State(enum.IntEnum):
    """How far a kernel has come: QK_RTL_* of the header."""

    DONE = 0
    IDLE = 1
    RUNNING = 2


class Ran(NamedTuple):
    """One launch: whether it is done, its clock cycles, and the register axi_error (0: every access was answered)."""

    state: State
    cycles: int
    axi_error: int


def find_library() -> Path:
    """Where the library is: $HILLINFER_RTL, inside the package, or where `make rtl-device` builds it."""
    return libraries.find(LIBRARY, "the library of the kernel's RTL", "HILLINFER_RTL", "rtl", "make rtl-device")


class Library:
    """One built library, and the registers of the kernel in it."""

    def __init__(self, path: Path) -> None:
        try:
            self.c = _declare(ctypes.CDLL(str(path.resolve())))
            version, abi = self.c.qk_rtl_version(), self.c.qk_rtl_abi_version()
        except (OSError, AttributeError) as error:
            raise DeviceError(f"{path} is not the library of the kernel's RTL: {_BUILD_AGAIN} ({error})") from error
        if (version, abi) != (_VERSION, numbers.ABI_VERSION):
            raise DeviceError(
                f"{path} has version {version} of its interface and {abi} of the kernel's ABI, this package needs "
                f"{_VERSION} and {numbers.ABI_VERSION}: {_BUILD_AGAIN}"
            )

    def register(self, name: str) -> int:
        """Byte offset of an argument's control register, of "control", or of "axi_error"."""
        offset: int = self.c.qk_rtl_register(name.encode())
        if offset < 0:
            raise DeviceError(f"the kernel's RTL has no register {name!r}: {_BUILD_AGAIN}")
        return offset


@functools.cache
def load() -> Library:
    """The library that `find_library` finds, loaded once."""
    return Library(find_library())


class Kernel:
    """A device of its own, idle. ``map`` and ``unmap`` may be called from any thread at any time, all else by one.

    Whoever maps memory keeps it alive until ``unmap``, or ``close``, has returned.
    """

    def __init__(self, library: Library | None = None) -> None:
        self.library = library or load()
        self._c = self.library.c
        self._device = self._c.qk_rtl_open()
        if not self._device:
            raise DeviceError("no memory for the RTL of the kernel: close something")

    def stalls(self, probability: float, latency: int = 0, seed: int = 0) -> None:
        """Memory that answers reads after ``latency`` cycles, and whose channels stand still at random."""
        self._c.qk_rtl_stalls(self._handle, probability, latency, seed)

    def map(self, address: int, memory: int, nbytes: int, *, writable: bool) -> None:
        """Let the kernel reach the host's ``memory`` (an address in this process) at its own ``address``."""
        if self._c.qk_rtl_map(self._handle, address, memory, nbytes, writable):
            raise DeviceError(f"{nbytes} bytes at {address:#x} overlap memory that is mapped, or are none")

    def unmap(self, address: int) -> None:
        """Take back what was mapped at ``address``; afterwards, and once closed, the kernel does not touch it."""
        if self._device and self._c.qk_rtl_unmap(self._handle, address):
            raise DeviceError(f"no memory is mapped at {address:#x}")

    def write(self, offset: int, value: int) -> None:
        """Write a control register, 32 bits."""
        self._c.qk_rtl_write(self._handle, offset, value & 0xFFFFFFFF)

    def read(self, offset: int) -> int:
        """Read a control register, 32 bits."""
        return int(self._c.qk_rtl_read(self._handle, offset))

    def run(self, most_cycles: int) -> State:
        """Let time pass until a launch is done, nothing is left to do, or ``most_cycles`` are over."""
        return State(self._c.qk_rtl_run(self._handle, most_cycles))

    @property
    def cycles(self) -> int:
        """Clock cycles since the device was opened."""
        return int(self._c.qk_rtl_cycles(self._handle))

    def launch(self, addresses: Sequence[int], scalars: Sequence[int], most_cycles: int) -> Ran:
        """A whole launch: addresses of query, keys, exps and blocks, and Launch.scalars.

        One that is not done within ``most_cycles`` needs a ``reset``.
        """
        cycles, axi_error = ctypes.c_uint64(), ctypes.c_uint32()
        state = self._c.qk_rtl_launch(
            self._handle,
            (ctypes.c_uint64 * 4)(*addresses),
            (ctypes.c_int32 * 6)(*scalars),
            most_cycles,
            ctypes.byref(cycles),
            ctypes.byref(axi_error),
        )
        return Ran(State(state), cycles.value, axi_error.value)

    def run_here(self, query: int, keys: int, exps: int, blocks: int, scalars: tuple[int, ...]) -> None:
        """One launch on memory of this process, at its own addresses, of which the kernel reaches what it should.

        As native.Library.run, but for a launch that goes wrong: DeviceError.
        """
        try:
            sizes = Launch(*scalars)
            beats = (sizes.query_beats, sizes.key_beats, sizes.exponent_beats, sizes.block_beats)
        except DeviceError:  # the kernel refuses it too, in one slot
            beats = (0, 0, 0, numbers.SLOT_BEATS)
        addresses, mapped = (query, keys, exps, blocks), []
        try:
            for port, (address, count) in enumerate(zip(addresses, beats, strict=True)):
                if count:
                    self.map(address, address, count * numbers.BEAT_BYTES, writable=port == 3)
                    mapped.append(address)
            self.checked_launch(addresses, scalars)
        finally:
            for address in mapped:
                self.unmap(address)

    def checked_launch(self, addresses: Sequence[int], scalars: tuple[int, ...], most_cycles: int | None = None) -> Ran:
        """A launch that is done without an error; DeviceError otherwise, after which the kernel is idle again.

        most_cycles   None: 64 for each beat of keys, and a million
        """
        if most_cycles is None:
            n_tokens, _, shape = scalars[:3]
            most_cycles = _FIXED_CYCLES + _CYCLES_PER_BEAT * max(0, n_tokens) * (shape & 15) * (shape >> 16 & 511)
        ran = self.launch(addresses, scalars, most_cycles)
        fault = self.fault()
        if ran.state is not State.DONE:
            self.reset()
            raise DeviceError(f"the kernel's RTL was not done after {most_cycles} cycles, and was reset")
        if ran.axi_error:
            raise DeviceError(f"the kernel's RTL met a memory error (axi_error {ran.axi_error:#x}): {fault}")
        return ran

    def fault(self) -> str | None:
        """The first access outside mapped memory since this was last asked, in words."""
        text = self._c.qk_rtl_fault(self._handle)
        return text.decode() if text else None

    def reset(self) -> None:
        """Forget what runs; mapped memory stays."""
        self._c.qk_rtl_reset(self._handle)

    def close(self) -> None:
        """Give it back. May be called twice."""
        device, self._device = self._device, None
        if device:
            self._c.qk_rtl_close(device)

    @property
    def _handle(self) -> int:
        if not self._device:
            raise DeviceError("this kernel's RTL is closed: open another")
        return int(self._device)


def _declare(library: ctypes.CDLL) -> ctypes.CDLL:
    handle, u32, u64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64
    functions: dict[str, tuple[type | None, list[type]]] = {
        "version": (ctypes.c_int, []),
        "abi_version": (ctypes.c_int, []),
        "register": (ctypes.c_int, [ctypes.c_char_p]),
        "open": (handle, []),
        "close": (None, [handle]),
        "stalls": (None, [handle, ctypes.c_double, ctypes.c_uint, u64]),
        "map": (ctypes.c_int, [handle, u64, ctypes.c_void_p, u64, ctypes.c_int]),
        "unmap": (ctypes.c_int, [handle, u64]),
        "write": (None, [handle, u32, u32]),
        "read": (u32, [handle, u32]),
        "run": (ctypes.c_int, [handle, u64]),
        "cycles": (u64, [handle]),
        "launch": (
            ctypes.c_int,
            [handle, u64 * 4, ctypes.c_int32 * 6, u64, ctypes.POINTER(u64), ctypes.POINTER(u32)],
        ),
        "fault": (ctypes.c_char_p, [handle]),
        "reset": (None, [handle]),
    }
    for name, (result, arguments) in functions.items():
        function = getattr(library, f"qk_rtl_{name}")
        function.restype, function.argtypes = result, arguments
    return library
