"""The xclbin2 container (AXLF): a header, and sections by their kind. The layout is /usr/include/xrt/xclbin.h.

Nothing here trusts a length that the file states: whatever is missing or points outside is a DeviceError.
"""

from __future__ import annotations

import enum
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from hillinfer.errors import DeviceError

MAGIC = b"xclbin2\0"
_HEADER_AT = 304  # behind magic, signature length, reserved bytes, key block and unique id
_HEADER = struct.Struct("<QQQHBBHH16s64s16s16sI4x")
_SECTION = struct.Struct("<I16s4xQQ")
_MOST_SECTIONS = 0x10000  # XCLBIN_MAX_NUM_SECTION
_MOST_BYTES = 64 << 20  # of a section that is read; those that are read have kilobytes


class Kind(enum.IntEnum):
    """Kinds of sections (enum axlf_section_kind) that this package reads or writes."""

    BITSTREAM = 0
    EMBEDDED_METADATA = 2
    MEM_TOPOLOGY = 6
    CONNECTIVITY = 7
    IP_LAYOUT = 8
    PARTITION_METADATA = 20


@dataclass(frozen=True)
class Header:
    """What the header says.

    mode        enum XCLBIN_MODE
    interface   the UUID of the shell's interface, 16 bytes (older name: of the feature ROM); zeros where it is not said
    platform    the platform's name (VBNV)
    uuid        of this image, 16 bytes
    """

    length: int
    timestamp: int
    version: tuple[int, int, int]
    mode: int
    interface: bytes
    platform: str
    uuid: bytes


class Container:
    """An open file. ``with Container(path) as container: container.header; container.section(kind)``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise DeviceError(f"{path} cannot be read: {error.strerror}") from error
        try:
            self._size = os.fstat(self._file.fileno()).st_size
            self.header, self._sections = self._read_headers()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Container:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()

    def section(self, kind: Kind) -> bytes | None:
        """The bytes of the first section of a kind; None when there is none."""
        if kind not in self._sections:
            return None
        offset, size = self._sections[kind]
        if size > _MOST_BYTES:
            raise self._broken(f"its section {kind.name} claims {size} bytes")
        return self._read(offset, size, f"its section {kind.name}")

    def _read_headers(self) -> tuple[Header, dict[int, tuple[int, int]]]:
        if self._read(0, len(MAGIC), "its first bytes") != MAGIC:
            raise DeviceError(f"{self.path} is not an xclbin (it does not begin with xclbin2): build one (make xclbin)")
        fields = _HEADER.unpack(self._read(_HEADER_AT, _HEADER.size, "its header"))
        length, timestamp, _, patch, major, minor, mode, _, interface, platform, uuid, _, count = fields
        if length > self._size:
            raise self._broken(f"it has {self._size} of {length} bytes")
        if count > _MOST_SECTIONS:
            raise self._broken(f"it claims {count} sections")
        table = self._read(_HEADER_AT + _HEADER.size, count * _SECTION.size, "its table of sections")
        sections: dict[int, tuple[int, int]] = {}
        for kind, name, offset, size in _SECTION.iter_unpack(table):
            if offset + size > self._size:
                raise self._broken(f"section {kind} ({text_of(name)}) lies behind its end")
            sections.setdefault(kind, (offset, size))
        header = Header(length, timestamp, (major, minor, patch), mode, interface, text_of(platform), uuid)
        return header, sections

    def _read(self, offset: int, size: int, what: str) -> bytes:
        try:
            self._file.seek(offset)
            found = self._file.read(size)
        except OSError as error:
            raise DeviceError(f"{self.path} cannot be read: {error.strerror}") from error
        if len(found) < size:
            raise self._broken(f"{what} is cut off")
        return found

    def _broken(self, why: str) -> DeviceError:
        return DeviceError(f"{self.path} is a damaged xclbin: {why}. Copy or build it again (make xclbin)")


def text_of(field: bytes) -> str:
    """The text in a fixed field that ends at its first zero byte."""
    return field.split(b"\0", 1)[0].decode("utf-8", "replace")
