"""How messages travel: the host listens on a unix socket, the device process connects; a header before each message.

The headers are protobuf messages of fixed-size fields, so they always have the same length. XRT's answer header is read
as nine bytes: the size and nothing else.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from pathlib import Path

from .errors import EmulationError
from .messages import Api

_CALL = struct.Struct("<BQBI")  # field 1, fixed64: size; field 2, fixed32: which call
_ANSWER = struct.Struct("<BQ")
_FIXED64_FIELD_1, _FIXED32_FIELD_2 = 0x09, 0x15
_KNOWN = frozenset(int(api) for api in Api)


def socket_path(environment: dict[str, str], prefix: str = "") -> Path:
    """Where the shim listens, as it works it out itself."""
    user, name = environment.get("USER"), environment.get("EMULATION_SOCKETID", "xcl_sock")
    return Path("/tmp", user, prefix + name) if user else Path("/tmp", prefix + "xcl_sock")


def connect(path: Path, seconds: float) -> socket.socket:
    """Connect, waiting until the shim listens. EmulationError after that many seconds."""
    end = time.monotonic() + seconds
    while True:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(os.fspath(path))
        except OSError as error:
            link.close()
            if time.monotonic() > end:
                raise EmulationError(f"XRT does not listen on {path}: {error.strerror}") from error
            time.sleep(0.002)
        else:
            return link


class Wire:
    """One connection, one message at a time."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link

    def receive(self) -> tuple[Api, bytes] | None:
        """The next call and its payload; None when the host has gone. EmulationError for a call of another kind."""
        header = self._exactly(_CALL.size)
        if header is None:
            return None
        _, size, _, number = _CALL.unpack(header)
        payload = self._exactly(size)
        if payload is None:
            return None
        if number not in _KNOWN:
            raise EmulationError(f"XRT makes call {number}, which this card does not know")
        return Api(number), payload

    def answer(self, payload: bytes) -> None:
        self._link.sendall(_ANSWER.pack(_FIXED64_FIELD_1, len(payload)) + payload)

    def call(self, api: Api, payload: bytes = b"") -> None:
        """Send a call, as the shim does: for tests, and for the device's own socket to the host."""
        self._link.sendall(_CALL.pack(_FIXED64_FIELD_1, len(payload), _FIXED32_FIELD_2, api) + payload)

    def receive_answer(self) -> bytes:
        """The answer to a call; EOFError when the device has gone."""
        header = self._exactly(_ANSWER.size)
        payload = None if header is None else self._exactly(_ANSWER.unpack(header)[1])
        if payload is None:
            raise EOFError("the device process has gone")
        return payload

    def close(self) -> None:
        self._link.close()

    def _exactly(self, size: int) -> bytes | None:
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            got = self._link.recv_into(view[done:])
            if not got:
                return None
            done += got
        return bytes(data)
