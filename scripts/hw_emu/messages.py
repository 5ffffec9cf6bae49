"""The messages between XRT's hw_emu shim and the device process, and their protobuf field numbers.

Only what a card without streams, profiling and AI engines is asked for. Every call is a message; so is its answer.
"""

from __future__ import annotations

import enum
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = "hillinfer.hw_emu"
_Type = descriptor_pb2.FieldDescriptorProto
_TYPES: Final = {
    "bool": _Type.TYPE_BOOL,
    "bytes": _Type.TYPE_BYTES,
    "string": _Type.TYPE_STRING,
    "uint32": _Type.TYPE_UINT32,
    "uint64": _Type.TYPE_UINT64,
}


class Api(enum.IntEnum):
    """What is asked of the device process: the number in the header of a call."""

    CLOSE = 1
    LOAD = 3
    ALLOCATE = 4
    FREE = 5
    TO_DEVICE = 6
    FROM_DEVICE = 7
    WRITE_REGISTERS = 9
    READ_REGISTERS = 11
    TRACE_COUNT = 15
    READ_TRACE = 16
    TIMESTAMP = 17
    BUS_STATUS = 18
    DEBUG_MESSAGES = 19
    ENVIRONMENT = 20
    SETUP = 28


_ACK: Final = {"ack": ("bool", 1)}
_SCHEMA: Final[dict[Api, tuple[dict[str, tuple[str, int]], dict[str, tuple[str, int]]]]] = {
    Api.CLOSE: ({}, {"valid": ("bool", 1)}),
    Api.LOAD: ({}, _ACK),
    Api.ALLOCATE: (
        {"address": ("uint64", 1), "size": ("uint64", 2), "p2p": ("bool", 3)},
        {"ack": ("bool", 1), "filename": ("string", 2)},
    ),
    Api.FREE: ({"address": ("uint64", 1)}, _ACK),
    Api.TO_DEVICE: (
        {"address": ("uint64", 3), "data": ("bytes", 4), "size": ("uint64", 5), "offset": ("uint64", 6)},
        {"size": ("uint64", 1)},
    ),
    Api.FROM_DEVICE: (
        {"address": ("uint64", 4), "size": ("uint64", 5), "offset": ("uint64", 6)},
        {"size": ("uint64", 1), "data": ("bytes", 2)},
    ),
    Api.WRITE_REGISTERS: (
        {"address": ("uint64", 2), "size": ("uint32", 3), "data": ("bytes", 4)},
        {"valid": ("bool", 1)},
    ),
    Api.READ_REGISTERS: (
        {"address": ("uint64", 2), "size": ("uint32", 3)},
        {"valid": ("bool", 1), "data": ("bytes", 2)},
    ),
    Api.TRACE_COUNT: ({}, {"samples": ("uint32", 1)}),
    Api.READ_TRACE: ({}, {}),
    Api.TIMESTAMP: ({}, {"nanoseconds": ("uint64", 1)}),
    Api.BUS_STATUS: ({}, {}),
    Api.DEBUG_MESSAGES: ({}, {}),
    Api.ENVIRONMENT: ({}, _ACK),
    Api.SETUP: ({}, {"success": ("bool", 1)}),
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name=f"{_PACKAGE}.proto", package=_PACKAGE, syntax="proto2")
    for api, sides in _SCHEMA.items():
        for side, fields in zip(("CALL", "ANSWER"), sides, strict=True):
            message = file.message_type.add(name=f"{api.name}_{side}")
            for name, (kind, number) in fields.items():
                message.field.add(name=name, number=number, type=_TYPES[kind], label=_Type.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{message.name}"))
        for message in file.message_type
    }


_CLASSES: Final = _classes()


def call(api: Api, payload: bytes = b"", **fields: Any) -> Any:
    """A call, parsed from ``payload`` or made of ``fields``. Fields that are not in the schema are skipped."""
    message = _CLASSES[f"{api.name}_CALL"](**fields)
    message.MergeFromString(payload)
    return message


def answer(api: Api, **fields: Any) -> Any:
    """An answer of these fields."""
    return _CLASSES[f"{api.name}_ANSWER"](**fields)


def acknowledge(api: Api) -> Any:
    """The answer that says no more than yes: each flag that this answer has is set."""
    fields = _SCHEMA[api][1]
    return answer(api, **{name: True for name, (kind, _) in fields.items() if kind == "bool"})
