"""An image as a whole: what it was built for, its kernels, compute units, memories and how they are connected."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from hillinfer.csd.xclbin.container import Container, Kind, text_of
from hillinfer.csd.xclbin.interfaces import interface_uuids
from hillinfer.csd.xclbin.metadata import Kernel, read_kernels
from hillinfer.errors import DeviceError

# enum XCLBIN_MODE: flat and partial images of a card, then emulation.
_MODES = {0: "hw", 1: "hw", 2: "hw", 3: "hw", 4: "hw_emu", 5: "sw_emu", 6: "hw_emu"}
_CONTROLS = {0: "ap_ctrl_hs", 1: "ap_ctrl_chain", 2: "ap_ctrl_none"}
_IP_KERNEL = 1
_COUNT = struct.Struct("<i")
_MEMORY = struct.Struct("<BB6xQQ16s")
_UNIT = struct.Struct("<IIQ64s")
_CONNECTION = struct.Struct("<iii")
_NOT_SAID = b"\0" * 16


@dataclass(frozen=True)
class Memory:
    """A memory bank: kind is enum MEM_TYPE; base and nbytes are addresses and sizes in the FPGA."""

    tag: str
    kind: int
    used: bool
    base: int
    nbytes: int


@dataclass(frozen=True)
class ComputeUnit:
    """A unit of IP_LAYOUT. ``index`` is its place there; control is "ap_ctrl_chain", …"""

    index: int
    kernel: str
    name: str
    base: int
    control: str


@dataclass(frozen=True)
class Connection:
    """Argument ``argument`` of the unit ``unit`` reaches the memory ``memory``; all three are indices."""

    argument: int
    unit: int
    memory: int


@dataclass(frozen=True)
class Image:
    """What an xclbin says about itself.

    mode          "hw" for a card, "hw_emu", "sw_emu"
    platform      name of the platform it was linked for
    interfaces    UUIDs of the shell's interface; empty where the image does not say
    """

    path: Path
    uuid: UUID
    mode: str
    platform: str
    interfaces: tuple[UUID, ...]
    kernels: tuple[Kernel, ...]
    units: tuple[ComputeUnit, ...]
    memories: tuple[Memory, ...]
    connections: tuple[Connection, ...]

    def memory_of(self, unit: ComputeUnit, argument: int) -> Memory | None:
        """The memory that an argument of a unit reaches; None when it is connected to none."""
        for connection in self.connections:
            if (connection.argument, connection.unit) == (argument, unit.index):
                return self.memories[connection.memory]
        return None


def read_image(path: Path) -> Image:
    """Read an xclbin. DeviceError, one line, for a file that is missing, foreign, cut off or damaged."""
    with Container(path) as container:
        header = container.header
        try:
            tree = container.section(Kind.PARTITION_METADATA)
            interfaces = interface_uuids(tree) if tree else ()
            memories = tuple(_memories(container.section(Kind.MEM_TOPOLOGY)))
            units = tuple(_units(container.section(Kind.IP_LAYOUT)))
            connections = tuple(_connections(container.section(Kind.CONNECTIVITY)))
            for connection in connections:
                if connection.memory not in range(len(memories)):
                    raise ValueError(f"an argument is connected to memory {connection.memory} of {len(memories)}")
            kernels = read_kernels(container.section(Kind.EMBEDDED_METADATA) or b"<project/>")
        except ValueError as error:
            raise DeviceError(f"{path} is a damaged xclbin: {error}. Copy or build it again (make xclbin)") from error
    if not interfaces and header.interface != _NOT_SAID:
        interfaces = (UUID(bytes=header.interface),)
    return Image(
        path=path,
        uuid=UUID(bytes=header.uuid),
        mode=_MODES.get(header.mode, f"mode {header.mode}"),
        platform=header.platform,
        interfaces=interfaces,
        kernels=kernels,
        units=units,
        memories=memories,
        connections=connections,
    )


def _memories(section: bytes | None) -> Iterator[Memory]:
    for kind, used, kilobytes, base, tag in _entries(section, _MEMORY, "MEM_TOPOLOGY", 8):
        yield Memory(text_of(tag), kind, bool(used), base, kilobytes << 10)


def _units(section: bytes | None) -> Iterator[ComputeUnit]:
    for index, (kind, properties, base, full_name) in enumerate(_entries(section, _UNIT, "IP_LAYOUT", 8)):
        if kind != _IP_KERNEL:
            continue
        kernel, _, name = text_of(full_name).partition(":")
        control = properties >> 8 & 0xFF
        yield ComputeUnit(index, kernel, name, base, _CONTROLS.get(control, f"control {control}"))


def _connections(section: bytes | None) -> Iterator[Connection]:
    for argument, unit, memory in _entries(section, _CONNECTION, "CONNECTIVITY", 4):
        yield Connection(argument, unit, memory)


def _entries(section: bytes | None, entry: struct.Struct, name: str, start: int) -> Iterator[tuple[Any, ...]]:
    """The entries of a table that begins with their number, as struct unpacks them."""
    if section is None:
        return
    if len(section) < start:
        raise ValueError(f"its section {name} is cut off")
    (count,) = _COUNT.unpack_from(section)
    if not 0 <= count <= (len(section) - start) // entry.size:
        raise ValueError(f"its section {name} claims {count} entries in {len(section)} bytes")
    for index in range(count):
        yield entry.unpack_from(section, start + index * entry.size)
