"""XRT's Python module, and the only place that knows how its versions differ.

2.13 (the SmartSSD's) loads an image with ``device.load_xclbin``. From 2.16 on there are hardware contexts, which AMD
means to replace it; pyxrt opens one exclusively from 2.23 on (``hw_context.access_mode``), so versions between are used
as 2.13 is, which they all understand. Run here: 2.13, emulated. Not run: all others, written by AMD's documentation.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

from hillinfer.errors import DeviceError


def load_binding() -> Binding:
    """Import pyxrt; DeviceError says how to get it."""
    try:
        return Binding(importlib.import_module("pyxrt"))
    except ImportError as error:
        raise DeviceError(
            f"XRT's Python module cannot be imported ({error}). XRT's own is for the system's Python "
            "(source /opt/xilinx/xrt/setup.sh); for any other: make pyxrt, PYTHONPATH=build/pyxrt (docs/smartssd.md)"
        ) from error


class Binding:
    """What this package uses of pyxrt. Objects of pyxrt are Any; they are made and used on one thread."""

    def __init__(self, module: Any) -> None:
        self._pyxrt = module
        direction = module.xclBOSyncDirection
        self._to, self._from = direction.XCL_BO_SYNC_BO_TO_DEVICE, direction.XCL_BO_SYNC_BO_FROM_DEVICE

    def open(self, which: int | str) -> Any:
        """The card of an index, or of a bus address such as "0000:03:00.1"."""
        return self._pyxrt.device(which)

    def info(self, device: Any, key: str) -> str | None:
        """What the card says about itself; None when it has no such thing to say, as emulated cards often have not."""
        try:
            return str(device.get_info(getattr(self._pyxrt.xrt_info_device, key)))
        except Exception:
            return None

    def load(self, device: Any, image: Path, kernel: str) -> tuple[Any, Any]:
        """Load an image and take its compute unit for this process alone: the kernel, and what must live as long."""
        context = getattr(self._pyxrt, "hw_context", None)
        if context is not None and hasattr(context, "access_mode"):
            uuid = device.register_xclbin(self._pyxrt.xclbin(str(image)))
            opened = context(device, uuid, context.access_mode.exclusive)
            return self._pyxrt.kernel(opened, kernel), opened
        uuid = device.load_xclbin(str(image))
        return self._pyxrt.kernel(device, uuid, kernel, self._pyxrt.kernel.cu_access_mode.exclusive), uuid

    def group(self, kernel: Any, argument: int) -> int:
        """The memory bank that an argument reaches."""
        return int(kernel.group_id(argument))

    def buffer(self, device: Any, nbytes: int, group: int, *, p2p: bool) -> Any:
        """Memory in a bank. MemoryError, or XRT's own error, when there is none."""
        flags = self._pyxrt.bo.flags
        return self._pyxrt.bo(device, nbytes, flags.p2p if p2p else flags.normal, group)

    def part(self, buffer: Any, offset: int) -> Any:
        """A buffer from ``offset`` on, for an argument. It holds the memory, too."""
        return self._pyxrt.bo(buffer, buffer.size() - offset, offset)

    def to_card(self, buffer: Any, offset: int, nbytes: int) -> None:
        buffer.sync(self._to, nbytes, offset)

    def from_card(self, buffer: Any, offset: int, nbytes: int) -> None:
        buffer.sync(self._from, nbytes, offset)

    def run(self, kernel: Any) -> Any:
        """A run of the kernel: arguments are set on it, and it is started any number of times."""
        return self._pyxrt.run(kernel)

    def state(self, run: Any) -> int:
        """Its state, a number of enum ert_cmd_state. pyxrt has no name for some of them."""
        return int(run.state().value)

    def abort(self, run: Any) -> bool:
        """Ask XRT to give a run up; False where it cannot be asked: by AMD's pyxrt, and of an emulated card."""
        if not hasattr(run, "abort") or os.environ.get("XCL_EMULATION_MODE"):
            return False
        run.abort()
        return True
