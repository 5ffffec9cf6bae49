"""Kernels as an image's EMBEDDED_METADATA describes them (XML): arguments, ports, register offsets.

The same description is in the ``kernel.xml`` of a compiled kernel; XRT takes register offsets from it, and so nothing
of this package writes one down.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass


@dataclass(frozen=True)
class Argument:
    """One argument of a kernel.

    pointer     an address in memory (through ``port``), and no scalar
    size        bytes in the kernel's registers
    offset      of its first register
    type        as C++ has it; tools write it in ways of their own
    """

    name: str
    index: int
    pointer: bool
    port: str
    size: int
    offset: int
    type: str


@dataclass(frozen=True)
class Kernel:
    """A kernel of an image.

    vlnv        "vendor:library:name:version"
    protocol    how it is started: "ap_ctrl_chain", "ap_ctrl_hs", …; empty where it is not said
    widths      bits of the data of each port
    arguments   in order of their index
    instances   names of its compute units
    """

    name: str
    vlnv: str
    protocol: str
    widths: dict[str, int]
    arguments: tuple[Argument, ...]
    instances: tuple[str, ...]

    @property
    def version(self) -> str:
        """The last part of the VLNV, as in "1.0"; empty when there is none."""
        return self.vlnv.split(":")[3] if self.vlnv.count(":") == 3 else ""


def read_kernels(xml: bytes) -> tuple[Kernel, ...]:
    """Every kernel of the document. ValueError, in words, for one that cannot be understood."""
    try:
        # XRT ends the text with zero bytes when it pads a section.
        root = ElementTree.fromstring(xml.rstrip(b"\0"))
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise ValueError(f"its metadata is no XML ({error})") from error
    return tuple(_kernel(element) for element in root.iterfind("./platform/device/core/kernel"))


def _kernel(element: ElementTree.Element) -> Kernel:
    arguments = [_argument(argument) for argument in element.iterfind("arg")]
    return Kernel(
        name=element.get("name", ""),
        vlnv=element.get("vlnv", ""),
        protocol=element.get("hwControlProtocol", ""),
        widths={port.get("name", ""): _number(port, "dataWidth", "0") for port in element.iterfind("port")},
        arguments=tuple(sorted(arguments, key=lambda argument: argument.index)),
        instances=tuple(instance.get("name", "") for instance in element.iterfind("instance")),
    )


def _argument(element: ElementTree.Element) -> Argument:
    return Argument(
        name=element.get("name", ""),
        index=_number(element, "id", "-1"),
        pointer=_number(element, "addressQualifier", "0") == 1,
        port=element.get("port", ""),
        size=_number(element, "size", "0"),
        offset=_number(element, "offset", "-1"),
        type=element.get("type", ""),
    )


def _number(element: ElementTree.Element, name: str, default: str) -> int:
    text = element.get(name, default)
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"{element.tag} {element.get('name')!r} has the {name} {text[:40]!r}") from None
