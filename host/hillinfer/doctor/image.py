"""The kernel's image for a card: found, whole, of this package's ABI, and for the shell that the card has."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from hillinfer.doctor import pci
from hillinfer.doctor.emulation import emulating
from hillinfer.doctor.finding import Finding, bad, good
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted
from hillinfer.errors import DeviceError

if TYPE_CHECKING:
    from hillinfer.csd.xclbin import Image

SUBJECT = "image"


def examine(machine: Machine, wanted: Wanted) -> Iterator[Finding]:
    """What the drivers would check before they load it, each check a finding."""
    from hillinfer.csd import xclbin  # here: the engine comes along, which may lack its libraries
    from hillinfer.csd.images import find_image

    needed = wanted.uses("xrt", "pynq")
    try:
        image = xclbin.read_image(find_image(wanted.xclbin))
    except DeviceError as error:
        means = "the FPGA is loaded with it; without one there is nothing on the card that could score"
        yield Finding(SUBJECT, "xclbin", bad(needed), "none that can be read", means, str(error))
        return
    yield Finding(SUBJECT, "xclbin", good(needed), f"{image.path}, for {image.platform or 'a platform not named'}")
    emulation = machine.environ.get("XCL_EMULATION_MODE")
    checks: list[tuple[str, Callable[[], object]]] = [
        ("mode", lambda: xclbin.check_mode(image, emulation)),
        ("provenance", lambda: xclbin.check_provenance(image)),
        ("ABI", lambda: xclbin.find_scorer(image)),
    ]
    if needed and not emulating(machine):
        everything = pci.functions(machine)
        for card in wanted.cards:
            function = pci.chosen(card, everything, machine)
            if function is not None:
                checks.append((f"shell of {function.address}", _shell(image, function, machine)))
    for name, check in checks:
        try:
            check()
        except DeviceError as error:
            yield Finding(SUBJECT, name, bad(needed), "wrong", "the drivers refuse this image", str(error))
        else:
            yield Finding(SUBJECT, name, good(needed), "right")


def _shell(image: Image, function: pci.Function, machine: Machine) -> Callable[[], None]:
    """A check that one of the interfaces that the card's shell has is the one that the image was linked for."""
    from hillinfer.csd.xclbin import check_shell

    def check() -> None:
        told = [_uuid(line) for line in machine.lines(function.folder / "interface_uuids")]
        interfaces = [interface for interface in told if interface is not None]
        matching = [interface for interface in interfaces if interface in image.interfaces]
        check_shell(image, function.address, next(iter(matching or interfaces), None), None)

    return check


def _uuid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
