"""The card as PYNQ has it: one for each index in a process, and so shared by the boards that are open on it."""

from __future__ import annotations

import os
import threading
import time
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from hillinfer.csd.kernel.board import Port
from hillinfer.csd.xclbin import fit_image
from hillinfer.csd.xclbin.checks import KERNEL
from hillinfer.errors import DeviceError, DeviceFull

VERSION = "3.0.1"

_FIX = (
    f'in an environment of its own: pip install "pynq=={VERSION}" "numpy<2" "pycparser<2.23" "setuptools<70" '
    "(bash scripts/setup-pynq makes one of a checkout)"
)
_STEP_MS = 100  # how long XRT is asked to wait at once; it returns earlier when a launch is done
_cards: dict[int, PynqCard] = {}
_opening = threading.Lock()


def open_card(index: int, xclbin: Path) -> PynqCard:
    """The card of this index with the xclbin loaded. DeviceError for another PYNQ, no such card, or a wrong image."""
    with _opening:
        card = _cards.get(index)
        if card is None:
            card = _cards[index] = PynqCard(index, xclbin)
        elif card.image != xclbin.read_bytes():
            raise DeviceError(f"{card.name} is open with another xclbin than {xclbin}: close that first")
        card.users += 1
        return card


def check_version() -> None:
    """DeviceError unless the PYNQ that is installed is the one that works."""
    try:
        found = metadata.version("pynq")
    except metadata.PackageNotFoundError:
        raise DeviceError(f"PYNQ is not installed here. Install it {_FIX}") from None
    if found != VERSION:
        raise DeviceError(f"PYNQ {found} is installed, which finds no PCIe cards. Install {VERSION} {_FIX}")


class PynqCard:
    """A compute unit of a loaded xclbin and its memories. One call at a time, from any thread.

    users   boards that are open on it; the last one closes it
    """

    def __init__(self, index: int, xclbin: Path) -> None:
        self.name, self.users = f"pynq:{index}", 0
        self._lock = threading.RLock()
        self._lost: str | None = None
        fit_image(xclbin, os.environ.get("XCL_EMULATION_MODE"))
        self.image = xclbin.read_bytes()
        overlay_of = _import_overlay()
        self._device = _device(index)
        try:
            overlay = overlay_of(os.fspath(xclbin), device=self._device)
        except (RuntimeError, OSError, ValueError, KeyError, AssertionError) as error:
            raise DeviceError(f"{self.name} cannot load {xclbin}: {error}") from error
        units = [name for name, ip in overlay.ip_dict.items() if ip["type"].split(":")[2:3] == [KERNEL]]
        self._unit: Any = getattr(overlay, units[0])
        registers = overlay.ip_dict[units[0]]["registers"]
        try:
            self._memories = {port: getattr(overlay, registers[port.name.lower()]["memory"]) for port in Port}
        except KeyError as error:
            raise DeviceError(f"{xclbin}: its {KERNEL} has no argument {error}: build it again") from error

    @property
    def memory_bytes(self) -> int:
        """Of all memories that the kernel reaches."""
        return int(sum(memory.size for memory in set(self._memories.values())))

    def allocate(self, nbytes: int, port: Port) -> Any:
        """An array of PYNQ, uint8 [nbytes], with whatever is in it. DeviceFull when there is no room."""
        from pynq import allocate

        with self._lock:
            self.check()
            try:
                return allocate((nbytes,), np.uint8, target=self._memories[port])
            except RuntimeError as error:
                raise DeviceFull(f"{self.name} has no room for {nbytes} bytes of {port.name}: {error}") from error

    def copy(self, array: Any, way: str, offset: int, nbytes: int) -> None:
        """Copy a part of an array "TO" the card or "FROM" it. PYNQ's own sync overlooks positive errors."""
        with self._lock:
            self.check()
            if nbytes:
                from pynq._3rdparty import xrt

                direction = getattr(xrt.xclBOSyncDirection, f"XCL_BO_SYNC_BO_{way}_DEVICE")
                error = xrt.xclSyncBO(self._device.handle, array.bo, direction, nbytes, offset)
                if error:
                    raise DeviceError(f"{self.name}: copying {nbytes} bytes {way.lower()} it failed (error {error})")

    def start(self, arrays: list[Any], scalars: tuple[int, ...]) -> Any:
        """Queue a launch; what PYNQ calls a wait handle."""
        with self._lock:
            self.check()
            try:
                return self._unit.start(*arrays, *(int(scalar) for scalar in scalars))
            except Exception as error:
                raise DeviceError(f"{self.name} does not take a launch: {error}") from error

    def wait(self, handle: Any, seconds: float) -> None:
        """Until a launch is done. One that fails, or is not done by then, is the end of the card."""
        end = time.monotonic() + seconds
        while True:
            with self._lock:
                self.check()
                if handle.done:
                    break
                if time.monotonic() > end:
                    self._lose(f"{self.name}: a launch is not done after {seconds:g} s: xbutil reset the card")
                self._device._handle_events(_STEP_MS)  # as handle.wait does, which has no end
        error = handle._future.exception()
        if error is not None:
            self._lose(f"{self.name}: the card says: {error}")

    def check(self) -> None:
        """DeviceError when the card is lost."""
        if self._lost is not None:
            raise DeviceError(self._lost)

    def leave(self) -> None:
        """A board is done with it, all of its buffers freed."""
        with _opening, self._lock:
            self.users -= 1
            if not self.users:
                _cards.pop(int(self.name.partition(":")[2]))
                self._unit = None
                self._device.free_bitstream()
                self._device._bo_cache.clear()  # frees what it holds, for which the card must still be open
                self._device.close()

    def _lose(self, why: str) -> NoReturn:
        self._lost = why
        raise DeviceError(why)


def _import_overlay() -> Any:
    check_version()
    if not os.environ.get("XILINX_XRT"):
        raise DeviceError("PYNQ finds XRT by the variable XILINX_XRT: source /opt/xilinx/xrt/setup.sh")
    try:
        from pynq import Overlay
    except Exception as error:  # it fails in many ways where numpy or pycparser are not those it needs
        raise DeviceError(f"PYNQ cannot be imported ({error}): install it {_FIX}") from error
    return Overlay


def _device(index: int) -> Any:
    from pynq.pl_server.device import Device

    try:
        devices = Device.devices
    except RuntimeError:  # "No Devices Found"
        devices = []
    if not 0 <= index < len(devices):
        raise DeviceError(f"there is no pynq:{index}, as PYNQ finds {len(devices)} cards: xbutil examine lists them")
    return devices[index]
