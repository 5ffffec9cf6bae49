"""The reader of many rows at once, as a device opens it (host/native/row_reader.h)."""

from __future__ import annotations

import os

from hillinfer import _native
from hillinfer.errors import SettingError, nearest

ENGINES = ("auto", "io_uring", "pool")
"""What reads rows: io_uring, threads in pread, or io_uring where the kernel gives it."""

VARIABLE = "HILLINFER_IO"
"""The environment variable that names one of them."""

_REQUEST_BYTES = 1 << 17
_ARENA_BYTES = 8 << 20  # what users may lock by default
_PAGE = 4096


def open_reader(row_bytes: int) -> _native.RowReader:
    """A reader for rows of ``row_bytes`` bytes. SettingError: $HILLINFER_IO is no engine, or not to be had here."""
    engine = os.environ.get(VARIABLE) or "auto"
    if engine not in ENGINES:
        raise SettingError(f"{VARIABLE} is {engine!r}, which is no I/O engine{nearest(engine, ENGINES)}")
    request = max(_REQUEST_BYTES, (row_bytes // _PAGE + 3) * _PAGE)
    try:
        return _native.RowReader(engine, arena_bytes=max(_ARENA_BYTES, 8 * request), request_bytes=request)
    except ValueError as error:
        raise SettingError(f"{VARIABLE} is {engine!r}, which this machine refuses ({error}): leave it out") from None
