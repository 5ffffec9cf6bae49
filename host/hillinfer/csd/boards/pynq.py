"""A SmartSSD by way of PYNQ: ``Overlay``, ``allocate``, ``start``; the same on an emulated card (docs/emulation.md).

PYNQ 3.0.1 only: no release after it finds PCIe cards. It has no p2p buffers, so keys are resident. It waits for ever
and takes a failed copy for a good one: here a launch has a deadline, and copies are made with the calls below PYNQ's.
"""

from __future__ import annotations

import os
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from hillinfer.csd.abi import numbers
from hillinfer.csd.kernel.board import Board, Buffer, Part, Port, Running
from hillinfer.errors import DeviceError, DeviceFull

VERSION = "3.0.1"
KERNEL = "qk_score"
DEADLINE = 60.0
"""Seconds a launch may take: the largest one takes one on the card, many more in the RTL's simulation."""

_FIX = f'in an environment of its own: pip install "pynq=={VERSION}" "numpy<2" "pycparser<2.23" "setuptools<70"'
_STEP_MS = 1000  # how long PYNQ asks XRT to wait at once


def open_board(index: int, xclbin: Path, *, deadline: float = DEADLINE) -> PynqBoard:
    """Open the card of this index and load the xclbin. DeviceError for another PYNQ, a missing card, a wrong image."""
    check_version()
    try:
        from pynq import Overlay
        from pynq.pl_server.device import Device
    except Exception as error:  # it fails in many ways where numpy or pycparser are not those it needs
        raise DeviceError(f"PYNQ cannot be imported ({error}): install it {_FIX}") from error
    if not os.environ.get("XILINX_XRT"):
        raise DeviceError("PYNQ finds XRT by the variable XILINX_XRT: source /opt/xilinx/xrt/setup.sh")
    try:
        devices = Device.devices
    except RuntimeError:  # "No Devices Found"
        devices = []
    if not 0 <= index < len(devices):
        raise DeviceError(f"there is no pynq:{index}, as PYNQ finds {len(devices)} cards: xbutil examine lists them")
    device = devices[index]
    try:
        overlay = Overlay(os.fspath(xclbin), device=device)
    except (RuntimeError, OSError, ValueError, KeyError, AssertionError) as error:
        raise DeviceError(f"pynq:{index} cannot load {xclbin}: {error}") from error
    units = [name for name in overlay.ip_dict if overlay.ip_dict[name]["type"].split(":")[2:3] == [KERNEL]]
    if not units:
        raise DeviceError(
            f"{xclbin} has no {KERNEL}, but {', '.join(overlay.ip_dict) or 'nothing'}: build it (make xclbin)"
        )
    return PynqBoard(f"pynq:{index}", device, overlay, units[0], deadline)


def check_version() -> None:
    """DeviceError unless the PYNQ that is installed is the one that works."""
    try:
        found = metadata.version("pynq")
    except metadata.PackageNotFoundError:
        raise DeviceError(f"PYNQ is not installed here. Install it {_FIX}") from None
    if found != VERSION:
        raise DeviceError(f"PYNQ {found} is installed, which finds no PCIe cards. Install {VERSION} {_FIX}")


class PynqBuffer(Buffer):
    """A buffer of PYNQ: an array that knows its address on the card."""

    def __init__(self, board: PynqBoard, array: Any) -> None:
        self._board, self.array = board, array
        self.nbytes = len(array)
        self.host = np.asarray(array).view(np.ndarray)

    def to_board(self, offset: int, nbytes: int) -> None:
        self._board.copy(self.array, "TO", offset, nbytes)

    def from_board(self, offset: int, nbytes: int) -> None:
        self._board.copy(self.array, "FROM", offset, nbytes)

    def close(self) -> None:
        if self.array is not None:
            array, self.array = self.array, None
            self.host = np.empty(0, np.uint8)
            array.freebuffer()


class PynqRunning(Running):
    """A launch in XRT's queue."""

    def __init__(self, board: PynqBoard, handle: Any) -> None:
        self._board, self._handle = board, handle

    def wait(self) -> None:
        self._board.wait(self._handle)


class PynqBoard(Board):
    """One compute unit of a loaded xclbin. ``open_board`` makes it."""

    p2p = False
    alignment = numbers.BEAT_BYTES
    depth = 16  # of XRT's command queue

    def __init__(self, name: str, device: Any, overlay: Any, unit: str, deadline: float) -> None:
        self.name = name
        self._device, self._overlay, self._deadline = device, overlay, deadline
        self._unit = getattr(overlay, unit)
        registers = overlay.ip_dict[unit]["registers"]
        try:
            self._memories = {port: getattr(overlay, registers[port.name.lower()]["memory"]) for port in Port}
        except KeyError as error:
            raise DeviceError(f"{name}: the xclbin's {KERNEL} has no argument {error}: build it again") from error
        self.memory_bytes = sum(memory.size for memory in set(self._memories.values()))
        self._buffers: list[PynqBuffer] = []
        self._lost: str | None = None

    def check(self) -> None:
        """DeviceError when the board is closed, or lost."""
        if self._lost is not None:
            raise DeviceError(self._lost)

    def allocate(self, nbytes: int, port: Port, *, p2p: bool = False) -> PynqBuffer:
        self.check()
        if p2p:
            raise DeviceError(f"{self.name}: PYNQ has no p2p buffers; keys are streamed by xrt devices only")
        from pynq import allocate

        try:
            array = allocate((nbytes,), np.uint8, target=self._memories[port])
        except RuntimeError as error:
            raise DeviceFull(f"{self.name} has no room for {nbytes} bytes of {port.name}: {error}") from error
        buffer = PynqBuffer(self, array)
        self._buffers.append(buffer)
        buffer.host[:] = 0
        buffer.to_board(0, nbytes)
        return buffer

    def copy(self, array: Any, way: str, offset: int, nbytes: int) -> None:
        """Copy a part of a buffer "TO" the card or "FROM" it. PYNQ's own sync functions do not see an error."""
        self.check()
        if nbytes:
            from pynq._3rdparty import xrt

            direction = getattr(xrt.xclBOSyncDirection, f"XCL_BO_SYNC_BO_{way}_DEVICE")
            error = xrt.xclSyncBO(self._device.handle, array.bo, direction, nbytes, offset)
            if error:
                raise DeviceError(f"{self.name}: copying {nbytes} bytes {way.lower()} the card failed (error {error})")

    def start(self, query: Part, keys: Part, exps: Part, blocks: Part, scalars: tuple[int, ...]) -> PynqRunning:
        self.check()
        arrays = []
        for part in (query, keys, exps, blocks):
            assert isinstance(part.buffer, PynqBuffer)
            arrays.append(part.buffer.array[part.offset :])
        try:
            return PynqRunning(self, self._unit.start(*arrays, *(int(scalar) for scalar in scalars)))
        except Exception as error:
            raise DeviceError(f"{self.name} does not take a launch: {error}") from error

    def wait(self, handle: Any) -> None:
        """Until a launch is done. A launch that fails, or takes longer than the deadline, is the end of the board."""
        self.check()
        end = time.monotonic() + self._deadline
        while not handle.done:
            left = end - time.monotonic()
            if left <= 0:
                self._lose(f"{self.name}: a launch is not done after {self._deadline:g} s: xbutil reset the card")
            self._device._handle_events(min(_STEP_MS, max(1, int(left * 1000))))
        error = handle._future.exception()
        if error is not None:
            self._lose(f"{self.name}: the card says: {error}")

    def close(self) -> None:
        if self._lost is None:
            while self._device.active_bos:  # they read and write buffers that are about to go
                try:
                    self.wait(self._device.active_bos[0][1])
                except DeviceError:
                    break
        self._lost = f"{self.name} is closed: open another"
        for buffer in self._buffers:
            buffer.close()
        self._buffers.clear()
        if self._overlay is not None:
            self._overlay = self._unit = None
            self._device.free_bitstream()
            self._device._bo_cache.clear()  # frees what it holds, for which the card must still be open
            self._device.close()

    def _lose(self, why: str) -> None:
        self._lost = why
        raise DeviceError(why)
