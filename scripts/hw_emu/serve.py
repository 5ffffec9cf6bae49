"""python -m scripts.hw_emu.serve: the device process. The ``simulate.sh`` in an xclbin of ours starts it.

It runs in the folder that XRT unpacked, where the xclbin's writer has put kernel.json: the compute unit's base address
and the offsets of its registers. From the environment come XRT's own variables, HW_EMU_KERNEL (native or rtl),
HW_EMU_FAULT (faults.py) and HW_EMU_ERRORS, the file that errors are told in.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import NoReturn

from . import kernels, wire
from .device import Device
from .errors import EmulationError
from .faults import VARIABLE, Faults
from .messages import Api

_CONNECT_SECONDS = 20.0


def main() -> int:
    """Serve one host until it closes the device; 0, or 1 when the emulation cannot start."""
    environment = dict(os.environ)
    card = _card(environment)
    try:
        layout = json.loads(Path("kernel.json").read_text(encoding="utf-8"))
        faults = Faults.parse(environment.get(VARIABLE, ""), card)
        run = kernels.load(environment.get("HW_EMU_KERNEL", "native"))
        link = wire.connect(wire.socket_path(environment), _CONNECT_SECONDS)
    except Exception as error:  # whatever it is, the host waits for a card: tell it to the one who can end that
        _broken(error, card)
    device = Device(run, layout["registers"], layout["base"], faults, lambda error: _broken(error, card))
    try:
        back = wire.Wire(wire.connect(wire.socket_path(environment, "D2X_unix_sock_"), _CONNECT_SECONDS))
    except EmulationError as error:
        _broken(error, card)
    # The shim listens for calls of the device, too, and closes only when it has been told that there will be none.
    device.serve(wire.Wire(link), closing=lambda: back.call(Api.CLOSE))
    return 0


def _card(environment: dict[str, str]) -> int:
    found = re.search(r"device(\d+)$", environment.get("EMULATION_RUN_DIR", ""))
    return int(found[1]) if found else 0


def _broken(error: Exception, card: int) -> NoReturn:
    """Tell what went wrong, and answer nothing any more, as a card that hangs."""
    text = f"card {card}: {error if isinstance(error, EmulationError) else f'{type(error).__name__}: {error}'}\n"
    place = os.environ.get("HW_EMU_ERRORS")
    if place:
        with open(place, "a", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stderr.write(f"hw_emu: {text}")
    while True:
        time.sleep(60)


if __name__ == "__main__":
    sys.exit(main())
