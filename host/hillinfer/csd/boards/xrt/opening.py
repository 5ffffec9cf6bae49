"""From a name to a board: which card, which image, whether they belong together, and only then XRT's own loading."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

from hillinfer.csd.boards.xrt.binding import Binding, load_binding
from hillinfer.csd.boards.xrt.board import XrtBoard
from hillinfer.csd.boards.xrt.thread import CardThread
from hillinfer.csd.images import find_image
from hillinfer.csd.kernel.board import Port
from hillinfer.csd.xclbin import Image, check_shell, fit_image
from hillinfer.csd.xclbin.checks import KERNEL
from hillinfer.errors import DeviceError, SettingError

_SECONDS = {"hw": 30.0, "hw_emu": 600.0}  # a simulated kernel may take minutes for what takes the card milliseconds
_LOADING = 120.0  # seconds that loading an image may take at least


def open_board(name: str, xclbin: Path | None = None) -> XrtBoard:
    """Open the card ``name``, "xrt:0" (index) or "xrt:0000:03:00.1" (bus address), with ``qk_score`` on it.

    xclbin   the image; None: see hillinfer.csd.images

    A card has $HILLINFER_DEVICE_SECONDS for each launch and each copy (30; 600 in emulation) before it counts as lost.
    DeviceError for a wrong image, another shell, a card that is in use, dead, or not there.
    """
    binding = load_binding()
    mode = os.environ.get("XCL_EMULATION_MODE")
    image, scorer = fit_image(find_image(xclbin), mode)
    which = name.removeprefix("xrt:")
    thread = CardThread(name, _seconds(image.mode))
    try:
        device = thread.call("opening (`xbutil examine` lists the cards)", lambda: _open(binding, which))
        interface = thread.call("asking for its shell", lambda: binding.info(device, "interface_uuid"))
        shell = thread.call("asking for its name", lambda: binding.info(device, "name"))
        check_shell(image, name, _uuid(interface), shell if mode else None)
        kernel_name = KERNEL if scorer.units == 1 else f"{KERNEL}:{{{scorer.unit.name}}}"
        kernel, held = _load(thread, binding, device, image, kernel_name)
        groups = thread.call("asking for its banks", lambda: tuple(binding.group(kernel, port) for port in Port))
        return XrtBoard(name, thread, binding, device, kernel, held, groups, scorer.memories[Port.KEYS].nbytes)
    except BaseException:
        thread.stop()
        raise


def _open(binding: Binding, which: str) -> Any:
    return binding.open(int(which) if which.isdecimal() else which)


def _load(thread: CardThread, binding: Binding, device: Any, image: Image, kernel: str) -> tuple[Any, Any]:
    seconds = max(_LOADING, thread.seconds)
    try:
        return thread.call(f"loading {image.path.name}", lambda: binding.load(device, image.path, kernel), seconds)
    except DeviceError as error:
        thread.check()
        if any(word in str(error).lower() for word in ("busy", "in use", "exclusive", "access mode")):
            raise DeviceError(f"{error}: another program uses {thread.card}; end it, or use another card") from error
        raise


def _seconds(mode: str) -> float:
    text = os.environ.get("HILLINFER_DEVICE_SECONDS")
    try:
        seconds = float(text) if text else _SECONDS.get(mode, _SECONDS["hw"])
    except ValueError:
        seconds = 0.0
    if not seconds > 0:
        raise SettingError(f"HILLINFER_DEVICE_SECONDS is {text!r}: a number of seconds")
    return seconds


def _uuid(text: str | None) -> uuid.UUID | None:
    try:
        return uuid.UUID(text) if text else None
    except ValueError:
        return None
