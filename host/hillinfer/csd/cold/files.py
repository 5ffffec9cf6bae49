"""Cold files: anonymous, private, direct where the file system allows it, and gone when the process ends.

They hold people's prompts. ``O_TMPFILE`` gives a file without a name: no other user can open it and the kernel frees
it however the process ends, kill -9 included. Where a file system lacks it, the file is unlinked as soon as it exists.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hillinfer.errors import ColdPoolError, ColdPoolFull

_PREFIX = "hillinfer-cold-"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ALIGNMENTS = (512, 4096)


def aligned_buffer(nbytes: int) -> npt.NDArray[np.uint8]:
    """Page-aligned uint8 [nbytes], as O_DIRECT needs it."""
    return np.frombuffer(mmap.mmap(-1, max(nbytes, 1)), np.uint8)[:nbytes]


def prepare_folder(folder: Path, *, create: bool) -> None:
    """Make sure cold files can be made in ``folder``; ``create`` makes a missing one (the default folder)."""
    if create:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ColdPoolError(
                f"cannot create the cold folder {folder} ({error.strerror}): name another with --cold-dir"
            ) from None
    if not folder.exists():
        raise ColdPoolError(f"the cold folder {folder} does not exist: create it, or name another with --cold-dir")
    if not folder.is_dir():
        raise ColdPoolError(f"the cold folder {folder} is not a folder: name another with --cold-dir")
    _remove_leftovers(folder)
    try:
        os.close(_anonymous(folder, 0))
    except OSError as error:
        if error.errno in _FULL:
            raise full(folder, 0) from None
        raise _unusable(folder, error) from None


def _remove_leftovers(folder: Path) -> None:
    """Delete named files of a process that died in the instant between making and unlinking one."""
    for path in folder.glob(f"{_PREFIX}*"):
        owner = path.name[len(_PREFIX) :].split("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            with contextlib.suppress(OSError):
                path.unlink()


def _anonymous(folder: Path, flags: int) -> int:
    """A file descriptor of a new nameless file with mode 0600."""
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT):
            raise
    handle, name = tempfile.mkstemp(prefix=f"{_PREFIX}{os.getpid()}-", dir=folder)  # mkstemp: mode 0600
    os.unlink(name)
    if flags:
        path = f"/proc/self/fd/{handle}"
        try:
            direct = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags)
        except OSError:
            os.close(handle)
            raise
        os.close(handle)
        return direct
    return handle


class ColdFile:
    """A cold file. ``alignment``: what offsets, lengths and addresses must be multiples of when it is direct."""

    def __init__(self, folder: Path, *, direct: bool) -> None:
        self.folder = folder
        self.alignment = _ALIGNMENTS[0]
        self.direct = False
        self.fd = -1
        if direct:
            try:
                self.fd = _anonymous(folder, os.O_DIRECT)
                self.alignment = self._probe()
                self.direct = True
            except OSError as error:
                self.close()
                if error.errno in _FULL:
                    raise full(folder, 0) from None
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    raise _unusable(folder, error) from None
                # Else: no O_DIRECT on this file system (some network and memory ones): the page cache serves
        if self.fd < 0:
            try:
                self.fd = _anonymous(folder, 0)
            except OSError as error:
                raise full(folder, 0) if error.errno in _FULL else _unusable(folder, error) from None

    def _probe(self) -> int:
        """The smallest alignment with which the file can be read; raises OSError where none works."""
        page = aligned_buffer(4096)
        os.pwritev(self.fd, [page.data], 0)
        for alignment in _ALIGNMENTS:
            try:
                os.preadv(self.fd, [page[:alignment].data], alignment % 4096)
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
            else:
                return alignment
        raise OSError(errno.EINVAL, "no O_DIRECT")

    def write(self, data: npt.NDArray[np.uint8], offset: int) -> None:
        """Write all of ``data``; ColdPoolFull when there is no room."""
        done = 0
        while done < len(data):
            try:
                done += os.pwritev(self.fd, [data[done:].data], offset + done)
            except OSError as error:
                if error.errno in _FULL:
                    raise full(self.folder, len(data) - done) from None
                raise ColdPoolError(f"writing to the cold folder {self.folder} failed: {error.strerror}") from None

    def read(self, data: npt.NDArray[np.uint8], offset: int) -> int:
        """Fill ``data`` from ``offset``; returns the bytes there were (fewer only at the end of the file)."""
        done = 0
        while done < len(data):
            try:
                got = os.preadv(self.fd, [data[done:].data], offset + done)
            except OSError as error:
                raise ColdPoolError(f"reading the cold folder {self.folder} failed: {error.strerror}") from None
            if got == 0:
                break
            done += got
        return done

    def close(self) -> None:
        """Give the file back to the file system."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _unusable(folder: Path, error: OSError) -> ColdPoolError:
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return ColdPoolError(
            f"cannot open more files in the cold folder {folder} (two are needed per layer): "
            "raise the limit (ulimit -n 4096)"
        )
    return ColdPoolError(
        f"cannot write in the cold folder {folder} ({error.strerror}): "
        "make it writable, or name another with --cold-dir"
    )


def full(folder: Path, more: int) -> ColdPoolFull:
    """The error for a cold folder without room."""
    room = f", {more} more bytes needed" if more else ""
    return ColdPoolFull(f"the cold folder {folder} is full{room}: free some space, or name another with --cold-dir")


def check_room(folder: Path, nbytes: int) -> None:
    """ColdPoolFull unless the file system of ``folder`` has ``nbytes`` free for this user."""
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    if free < nbytes:
        raise ColdPoolFull(
            f"the cold folder {folder} has {free / 1e9:.2f} GB free and this run needs {nbytes / 1e9:.2f} GB: "
            "free some space, shorten the document, or name another with --cold-dir"
        )
