"""Write an xclbin for hw_emu: the container of xrt's xclbin.h, with the device process where a simulator would be.

It says of the kernel what v++ would: the names, ports and register offsets of the arguments, from the build's own
metadata; the memory and what is connected to it; the platform it is for.
"""

from __future__ import annotations

import io
import json
import struct
import uuid
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

KERNEL: Final = "qk_score"
POINTERS: Final = ("query", "keys", "exps", "blocks")
SCALARS: Final = ("n_tokens", "first_token", "shape", "format", "min_score", "tag")
BASE: Final = 0x1800000  # of the compute unit's registers
INTERFACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, "smartssd.hw_emu")
_REGISTERS_SIZE: Final = 0x10000

# Numbers of xclbin.h.
_BITSTREAM, _EMBEDDED_METADATA, _MEM_TOPOLOGY, _CONNECTIVITY, _IP_LAYOUT = 0, 2, 6, 7, 8
_MODE_HW_EMU, _MEM_DDR4, _IP_KERNEL, _AP_CTRL_CHAIN, _CONTROL_SHIFT = 4, 1, 1, 1, 8
_VERSION: Final = (2, 13, 466)

_SIMULATE: Final = """#!/bin/sh
# XRT starts this in the folder it unpacked; what it starts is the emulated card.
: "${HW_EMU_DEVICE:?this xclbin is for python -m scripts.hw_emu run}"
exec "$HW_EMU_DEVICE"
"""


@dataclass(frozen=True)
class Card:
    """What the xclbin is for.

    platform       name of the platform, as the card's shell reports it
    interface      UUID of the shell's interface; the default is the emulation's own
    memory_bytes   of bank0, the one memory; a multiple of 1024
    memory_base    its address
    clock_mhz      of the kernel
    """

    platform: str = "xilinx_u2_gen3x4_xdma_gc_base_2"
    interface: uuid.UUID = INTERFACE
    memory_bytes: int = 4 << 30
    memory_base: int = 0x40_0000_0000
    clock_mhz: int = 300


def write_xclbin(path: Path, registers: Mapping[str, int], card: Card | None = None, kernel: str = KERNEL) -> None:
    """Write the xclbin. ``registers``: byte offset of each argument by its name, from the kernel's build."""
    path.write_bytes(xclbin(registers, card or Card(), kernel))


def xclbin(registers: Mapping[str, int], card: Card, kernel: str = KERNEL) -> bytes:
    """The container's bytes. The same input gives the same bytes, and the same UUID."""
    sections = {
        _BITSTREAM: ("bitstream", _bitstream(registers)),
        _EMBEDDED_METADATA: ("embedded_metadata", _metadata(registers, card, kernel)),
        _MEM_TOPOLOGY: ("mem_topology", _memories(card)),
        _IP_LAYOUT: ("ip_layout", _kernels(kernel)),
        _CONNECTIVITY: ("connectivity", _connections()),
    }
    identity = uuid.uuid5(card.interface, b"".join(data for _, data in sections.values()).hex())
    return _container(sections, card, identity)


def _bitstream(registers: Mapping[str, int]) -> bytes:
    layout = {"base": BASE, "registers": dict(registers)}
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        for name, text, mode in (("simulate.sh", _SIMULATE, 0o755), ("kernel.json", json.dumps(layout), 0o644)):
            entry = zipfile.ZipInfo(f"behav_waveform/xsim/{name}")  # its date is fixed
            entry.external_attr = mode << 16
            files.writestr(entry, text)
    return archive.getvalue()


def _metadata(registers: Mapping[str, int], card: Card, kernel: str) -> bytes:
    """What v++ writes into EMBEDDED_METADATA, as far as XRT reads it."""
    clock = f"{card.clock_mhz}MHz"
    project = ElementTree.Element("project", name=kernel)
    vendor, board, name = [*card.platform.split("_", 2), "", ""][:3]
    platform = ElementTree.SubElement(project, "platform", vendor=vendor, boardid=board, name=name, featureRomTime="0")
    ElementTree.SubElement(platform, "version", major="2", minor="0")
    device = ElementTree.SubElement(
        platform, "device", name="fpga0", fpgaDevice="kintexuplus:xcku15p:ffva1156:2LV:e", addrWidth="0"
    )
    core = ElementTree.SubElement(
        device, "core", name="OCL_REGION_0", target="hw_em", type="clc_region", clockFreq=clock, numComputeUnits="60"
    )
    clocks = ElementTree.SubElement(core, "kernelClocks")
    ElementTree.SubElement(clocks, "clock", port="KERNEL_CLK", frequency=clock)
    body = ElementTree.SubElement(
        core,
        "kernel",
        name=kernel,
        language="c",
        vlnv=f"xilinx.com:hls:{kernel}:1.0",
        attributes="",
        preferredWorkGroupSizeMultiple="0",
        workGroupSize="1",
        interrupt="true",
        hwControlProtocol="ap_ctrl_chain",
    )
    for index in range(len(POINTERS)):
        _port(body, f"M_AXI_GMEM{index}", "master", 0xFFFFFFFFFFFFFFFF, 512)
    _port(body, "S_AXI_CONTROL", "slave", 0x1000, 32)
    for index, argument in enumerate((*POINTERS, *SCALARS)):
        pointer = index < len(POINTERS)
        size = "0x8" if pointer else "0x4"
        ElementTree.SubElement(
            body,
            "arg",
            name=argument,
            addressQualifier="1" if pointer else "0",
            id=str(index),
            port=f"M_AXI_GMEM{index}" if pointer else "S_AXI_CONTROL",
            size=size,
            offset=f"{registers[argument]:#x}",
            hostOffset="0x0",
            hostSize=size,
            type="void*" if pointer else "int",
        )
    instance = ElementTree.SubElement(body, "instance", name=f"{kernel}_1")
    ElementTree.SubElement(
        instance, "addrRemap", base=f"{BASE:#x}", range=f"{_REGISTERS_SIZE:#x}", port="S_AXI_CONTROL"
    )
    ElementTree.indent(project)
    return bytes(ElementTree.tostring(project, encoding="UTF-8", xml_declaration=True))


def _port(kernel: ElementTree.Element, name: str, mode: str, size: int, width: int) -> None:
    ElementTree.SubElement(
        kernel,
        "port",
        name=name,
        mode=mode,
        range=f"{size:#x}",
        dataWidth=str(width),
        portType="addressable",
        base="0x0",
    )


def _memories(card: Card) -> bytes:
    bank = struct.pack("<BB6xQQ16s", _MEM_DDR4, 1, card.memory_bytes >> 10, card.memory_base, b"bank0")
    return struct.pack("<i4x", 1) + bank


def _kernels(kernel: str) -> bytes:
    interrupts = 1
    properties = interrupts | _AP_CTRL_CHAIN << _CONTROL_SHIFT
    return struct.pack("<i4x", 1) + struct.pack(
        "<IIQ64s", _IP_KERNEL, properties, BASE, f"{kernel}:{kernel}_1".encode()
    )


def _connections() -> bytes:
    """Every pointer argument of the one compute unit is connected to the one memory."""
    pointers = range(len(POINTERS))
    return struct.pack("<i", len(pointers)) + b"".join(struct.pack("<iii", argument, 0, 0) for argument in pointers)


def _container(sections: Mapping[int, tuple[str, bytes]], card: Card, identity: uuid.UUID) -> bytes:
    header_size = 456 + 40 * len(sections)
    place = -(-header_size // 8) * 8
    heads, body = b"", b"\0" * (place - header_size)
    for kind, (name, data) in sections.items():
        heads += struct.pack("<I16s4xQQ", kind, name[:15].encode(), place, len(data))
        padded = data + b"\0" * (-len(data) % 8)
        body += padded
        place += len(padded)
    unsigned = struct.pack("<8si28s256sQ", b"xclbin2\0", -1, b"\xff" * 28, b"\xff" * 256, 0)
    major, minor, patch = _VERSION
    header = struct.pack(
        "<QQQHBBHH16s64s16s16sI4x",
        place,
        0,  # no time: the same input gives the same file
        0,
        patch,
        major,
        minor,
        _MODE_HW_EMU,
        0,
        card.interface.bytes,
        card.platform.encode(),
        identity.bytes,
        b"",
        len(sections),
    )
    return unsigned + header + heads + body
