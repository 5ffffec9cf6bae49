"""The cold folder: can files be made there, on which file system, how much room, O_DIRECT, and how fast it reads."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from hillinfer.config import default_cold_dir
from hillinfer.doctor import mounts
from hillinfer.doctor.finding import Finding, State
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.wanted import Wanted
from hillinfer.errors import ColdPoolError

if TYPE_CHECKING:
    from hillinfer.csd.cold.files import ColdFile

SUBJECT = "cold folder"
_LITTLE = 4 << 30
_PROBE = 16 << 20
_PIECE, _ROW = 1 << 20, 4096
_READS, _SECONDS = 256, 0.5
_SLOW_MIB_S = 200.0


def examine(machine: Machine, wanted: Wanted) -> Iterator[Finding]:
    """Every device keeps full-precision rows there, so for none is it unneeded."""
    from hillinfer.csd.cold.files import ColdFile  # here: the engine comes along, which may lack its libraries

    folder = (wanted.cold_dir or default_cold_dir()).expanduser().absolute()
    place = _place(folder, wanted.cold_dir is None)
    if place is None:
        yield Finding(
            SUBJECT,
            "folder",
            State.MISSING,
            f"{folder} is not a folder" if folder.exists() else f"{folder} does not exist",
            "the cold pool has nowhere to lie",
            f"mkdir -p {folder}, or name another with --cold-dir",
        )
        return
    try:
        file = ColdFile(place, direct=True)
    except ColdPoolError as error:
        means = "no cold file can be made there"
        yield Finding(SUBJECT, "folder", State.MISSING, str(folder), means, str(error))
        return
    try:
        made = "" if place == folder else " (made when it is first used)"
        yield Finding(SUBJECT, "folder", State.OK, f"{folder}{made}")
        yield _file_system(mounts.mount_of(machine, place.resolve()))
        free = _free(place)
        yield _room(free)
        yield _direct(file)
        if free > 2 * _PROBE:
            yield _speed(file)
    finally:
        file.close()


def _place(folder: Path, may_be_made: bool) -> Path | None:
    """The folder, or for one that would be made the nearest above it; None when there is none."""
    if may_be_made:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
    return folder if folder.is_dir() else None


def _file_system(mount: mounts.Mount | None) -> Finding:
    name = "file system"
    if mount is None:
        return Finding(SUBJECT, name, State.OK, "not told")
    found = f"{mount.type} on {mount.source}"
    if mount.type in mounts.MEMORY:
        means = "it is memory: the cold pool takes the DRAM that it is there to save"
        return Finding(SUBJECT, name, State.WARNING, found, means, "name a folder on an SSD with --cold-dir")
    if mount.remote:
        means = "every selected token is read over the network"
        return Finding(SUBJECT, name, State.WARNING, found, means, "name a folder on a local SSD with --cold-dir")
    return Finding(SUBJECT, name, State.OK, found)


def _free(place: Path) -> int:
    status = os.statvfs(place)
    return status.f_bavail * status.f_frsize


def _room(free: int) -> Finding:
    found = f"{free / 1e9:.1f} GB free"
    if free >= _LITTLE:
        return Finding(SUBJECT, "room", State.OK, found)
    means = "the whole KV cache goes there: 26 GB for 100,000 tokens of 32 layers with 8 KV heads of 128 in float32"
    return Finding(SUBJECT, "room", State.WARNING, found, means, "free some space, or name another with --cold-dir")


def _direct(file: ColdFile) -> Finding:
    if file.direct:
        return Finding(SUBJECT, "O_DIRECT", State.OK, f"reads of {file.alignment} bytes")
    means = "reads go through the page cache: DRAM beyond --hot-bytes fills with cold rows, and P2P cannot read them"
    fix = "ext4 or XFS on a local drive has it; name a folder there with --cold-dir"
    return Finding(SUBJECT, "O_DIRECT", State.WARNING, "not on this file system", means, fix)


def _speed(file: ColdFile) -> Finding:
    """Write 16 MiB once, read them in pieces, then single rows at random places for half a second at most."""
    from hillinfer.csd.cold.files import aligned_buffer

    buffer = aligned_buffer(_PIECE)
    buffer[:] = 0x5A
    places = range(0, _PROBE, _PIECE)
    try:
        for place in places:
            file.write(buffer, place)
        started = time.perf_counter()
        for place in places:
            file.read(buffer, place)
        sequential = _PROBE / (time.perf_counter() - started) / 2**20
        order = random.Random(0)
        started, reads = time.perf_counter(), 0
        while reads < _READS and time.perf_counter() - started < _SECONDS:
            file.read(buffer[:_ROW], order.randrange(_PROBE // _ROW) * _ROW)
            reads += 1
        single = (time.perf_counter() - started) / reads * 1e6
    except ColdPoolError as error:
        return Finding(SUBJECT, "reads", State.MISSING, "failed", "the cold pool cannot be used", str(error))
    found = f"{sequential:,.0f} MiB/s in 1 MiB pieces, {single:,.0f} µs for 4 KiB alone"
    if not file.direct:
        return Finding(SUBJECT, "reads", State.OK, f"{found} (from the page cache)")
    if sequential >= _SLOW_MIB_S:
        return Finding(SUBJECT, "reads", State.OK, found)
    means = "decoding waits for the drive at every step; an SSD reads ten times as fast"
    return Finding(SUBJECT, "reads", State.WARNING, found, means, "name a folder on an SSD with --cold-dir")
