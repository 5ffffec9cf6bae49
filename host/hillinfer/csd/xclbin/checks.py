"""Whether an image holds the ``qk_score`` of this package, for this card: asked before anything is loaded.

The ABI's version is the major version of the kernel's VLNV: "xilinx.com:hls:qk_score:1.0" speaks version 1. It is the
one field of a kernel's metadata that is a version, and it goes from the compiled kernel into every image (decision 25).
The arguments are compared as well, one by one; and a kernel that lies about both is found out at its first launch, as
a trailer begins with the version's magic number.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hillinfer.csd.abi import numbers
from hillinfer.csd.kernel.board import Port
from hillinfer.csd.xclbin.image import ComputeUnit, Image, Memory, read_image
from hillinfer.csd.xclbin.metadata import Argument, Kernel
from hillinfer.errors import DeviceError

KERNEL = "qk_score"
CONTROL = "ap_ctrl_chain"
POINTERS = tuple(port.name.lower() for port in Port)
SCALARS = ("n_tokens", "first_token", "shape", "format", "min_score", "tag")

_POINTER_BYTES, _SCALAR_BYTES = 8, 4
_CONTROL_BYTES = 0x10  # the registers before the first argument: control and interrupts
_NOT_SAID = uuid.UUID(int=0)
_CHUNK = 1 << 20
_REBUILD = "build it from this revision (make xclbin)"


@dataclass(frozen=True)
class Scorer:
    """The compute unit to use, and the memory each of the kernel's pointers reaches."""

    unit: ComputeUnit
    memories: tuple[Memory, ...]
    units: int
    """How many compute units of the kernel the image has."""


def fit_image(path: Path, emulation: str | None) -> tuple[Image, Scorer]:
    """Read an image and hold it against everything but a card's shell. emulation: $XCL_EMULATION_MODE."""
    image = read_image(path)
    check_mode(image, emulation)
    check_provenance(image)
    return image, find_scorer(image)


def find_scorer(image: Image) -> Scorer:
    """The first compute unit of ``qk_score``. DeviceError with the first thing that is not as this package needs it."""
    kernel = next((kernel for kernel in image.kernels if kernel.name == KERNEL), None)
    units = [unit for unit in image.units if unit.kernel == KERNEL]
    if kernel is None or not units:
        has = ", ".join(sorted({kernel.name for kernel in image.kernels})) or "no kernel"
        raise DeviceError(f"{image.path} has {has}, and no compute unit of {KERNEL}: {_REBUILD}")
    if wrong := next(_wrong(kernel, units[0]), None):
        raise DeviceError(f"{image.path} speaks another ABI than this package: {wrong}. {_REBUILD.capitalize()}")
    memories: list[Memory] = []
    for index, name in enumerate(POINTERS):
        memory = image.memory_of(units[0], index)
        if memory is None or not memory.used:
            raise DeviceError(f"{image.path}: {name} of {units[0].name} reaches no memory: {_REBUILD}")
        if memory.base % numbers.BEAT_BYTES:
            raise DeviceError(
                f"{image.path}: memory {memory.tag} begins at {memory.base:#x}, within a beat: {_REBUILD}"
            )
        memories.append(memory)
    return Scorer(units[0], tuple(memories), len(units))


def check_mode(image: Image, emulation: str | None) -> None:
    """An image for emulation runs in emulation, one for a card on a card. emulation: $XCL_EMULATION_MODE."""
    if image.mode == (emulation or "hw"):
        return
    fix = f"set XCL_EMULATION_MODE={image.mode}" if image.mode != "hw" else "unset XCL_EMULATION_MODE"
    there = f"XCL_EMULATION_MODE is {emulation}" if emulation else "XCL_EMULATION_MODE is not set"
    raise DeviceError(f"{image.path} is an image for {image.mode}, but {there}: {fix}, or use another image (--xclbin)")


def check_shell(image: Image, card: str, interface: uuid.UUID | None, platform: str | None) -> None:
    """DeviceError when the image was linked for another shell than the card has.

    card        its name, for the message
    interface   UUID of the shell's interface; None or zeros: the card doesn't say, as in emulation
    platform    name of the emulated platform; None on a card, where shell and platform have names of their own
    """
    fix = "use an image for this one (make xclbin PLATFORM=…), or program the shell it names (bitstreams/README.md)"
    if interface not in (None, _NOT_SAID):
        if image.interfaces and interface not in image.interfaces:
            wanted = " or ".join(map(str, image.interfaces))
            raise DeviceError(
                f"{image.path} was linked for another shell ({image.platform}, interface {wanted}) than {card} has "
                f"(interface {interface}): {fix}"
            )
    elif platform and image.platform and platform != image.platform:
        raise DeviceError(
            f"{image.path} was linked for another shell ({image.platform}) than {card} has ({platform}): {fix}"
        )


def check_provenance(image: Image) -> None:
    """Hold the image against the record beside it; without a record there is nothing to hold it against."""
    path = image.path.with_name(image.path.name + ".json")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise DeviceError(f"{path} cannot be read: {error}. Install the image again (make xclbin)") from error
    sums = record.get("sha256") if isinstance(record, dict) else None
    if not isinstance(sums, dict) or "xclbin" not in sums:
        raise DeviceError(f"{path} is no record of an image: install it again (make xclbin)")
    if record.get("target", image.mode) != image.mode:
        raise DeviceError(
            f"{path} tells of an image for {record['target']}, the file is one for {image.mode}: {_REBUILD}"
        )
    if sums["xclbin"] != _checksum(image.path):
        raise DeviceError(f"{image.path} is not the file that its record {path.name} tells of: {_REBUILD}")


def _wrong(kernel: Kernel, unit: ComputeUnit) -> Iterator[str]:
    """What differs from the ABI, a clause each."""
    if kernel.version.split(".")[0] != str(numbers.ABI_VERSION):
        yield f"version {kernel.version or 'unknown'} of the kernel, not {numbers.ABI_VERSION}"
    for control in (unit.control, kernel.protocol or CONTROL):
        if control != CONTROL:
            yield f"{unit.name} is started by {control}, not {CONTROL}"
    names = [argument.name for argument in kernel.arguments]
    if names != [*POINTERS, *SCALARS]:
        yield f"its arguments are {', '.join(names)}"
    if [argument.index for argument in kernel.arguments] != list(range(len(names))):
        yield "its arguments are not numbered in order"
    end = _CONTROL_BYTES
    for argument in kernel.arguments:
        yield from _wrong_argument(kernel, argument)
        if argument.offset < end or argument.offset % _SCALAR_BYTES:
            yield f"the register of {argument.name} is at {argument.offset:#x}"
        end = argument.offset + argument.size


def _wrong_argument(kernel: Kernel, argument: Argument) -> Iterator[str]:
    if argument.name in POINTERS:
        if not argument.pointer or argument.size != _POINTER_BYTES:
            yield f"{argument.name} is no pointer of 64 bits"
        elif kernel.widths.get(argument.port) != 8 * numbers.BEAT_BYTES:
            yield f"{argument.name} goes through a port of {kernel.widths.get(argument.port, 0)} bits"
    elif argument.pointer or argument.size != _SCALAR_BYTES:
        yield f"{argument.name} is no scalar of 32 bits"
    elif argument.type and "int" not in argument.type:
        yield f"{argument.name} is of the type {argument.type}"
    elif "unsigned" in argument.type:
        yield f"{argument.name} is unsigned"


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
