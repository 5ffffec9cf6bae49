"""Which shell an image was built for: the interface UUIDs in its PARTITION_METADATA, a flattened device tree.

Only nodes under /interfaces and their property ``interface_uuid`` count; XRT's driver compares the same ones.
"""

from __future__ import annotations

import struct
import uuid

_MAGIC = 0xD00DFEED
_HEADER = struct.Struct(">10I")
_BEGIN, _END_NODE, _PROPERTY, _NOP, _END = 1, 2, 3, 4, 9


def interface_uuids(tree: bytes) -> tuple[uuid.UUID, ...]:
    """The UUIDs, in the tree's order. ValueError for bytes that are no device tree."""
    if len(tree) < _HEADER.size:
        raise ValueError("the device tree is cut off")
    magic, _, structure, strings, *_ = _HEADER.unpack_from(tree)
    if magic != _MAGIC:
        raise ValueError("it is no device tree")
    found: list[uuid.UUID] = []
    path: list[str] = []
    at = structure
    while True:
        token = _word(tree, at)
        at += 4
        if token == _BEGIN:
            name = _string(tree, at)
            path.append(name)
            at += _padded(len(name.encode()) + 1)
        elif token == _END_NODE and path:
            path.pop()
        elif token == _PROPERTY:
            size, name_at = _word(tree, at), _word(tree, at + 4)
            value = tree[at + 8 : at + 8 + size]
            if len(path) == 3 and path[1] == "interfaces" and _string(tree, strings + name_at) == "interface_uuid":
                found.append(uuid.UUID(value.split(b"\0", 1)[0].decode("ascii")))
            at += 8 + _padded(size)
        elif token == _END:
            return tuple(found)
        elif token != _NOP:
            raise ValueError(f"the device tree has the token {token}")


def _padded(size: int) -> int:
    return -(-size // 4) * 4


def _word(tree: bytes, at: int) -> int:
    if not 0 <= at <= len(tree) - 4:
        raise ValueError("the device tree is cut off")
    return int.from_bytes(tree[at : at + 4], "big")


def _string(tree: bytes, at: int) -> str:
    end = tree.find(b"\0", at)
    if end < 0:
        raise ValueError("the device tree is cut off")
    return tree[at:end].decode("ascii")
