"""Folders in the cache that appear complete or not at all, and whose every file is checksummed.

A folder is filled under a temporary name beside its final one and renamed when its manifest is written, under a
lock: of two processes that need it at once, one builds and the other waits. A builder that is killed leaves only the
temporary folder, which the next builder removes.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hillinfer.errors import ModelError

MANIFEST = "manifest.json"


def sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    state = hashlib.sha256()
    buffer = memoryview(bytearray(1 << 20))
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            state.update(buffer[:count])
    return state.hexdigest()


def is_sealed(folder: Path) -> bool:
    """Whether the folder was completed; its contents are not read."""
    return (folder / MANIFEST).is_file()


def verify(folder: Path) -> None:
    """Read every file of a sealed folder and compare its checksum; ``ModelError`` names the first that is wrong."""
    fix = f"delete the folder {folder} (or run `make setup` for the default model), and it is made anew"
    try:
        files: dict[str, str] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{folder / MANIFEST} cannot be read ({error}): {fix}") from error
    for name, expected in files.items():
        path = folder / name
        try:
            found = sha256(path)
        except OSError as error:
            raise ModelError(f"{path} cannot be read ({error.strerror}): {fix}") from error
        if found != expected:
            raise ModelError(f"{path} has changed since it was written (sha256 {found}, not {expected}): {fix}")


def build(folder: Path, fill: Callable[[Path], None], *, source: str, repair: bool = False) -> None:
    """Make the folder unless it exists: ``fill`` writes its files (no subfolders) into a temporary folder.

    ``source`` goes into the manifest, for people. With ``repair`` a folder that fails ``verify`` is made anew.
    Errors of ``fill`` pass through and leave nothing behind; ``ModelError`` when the cache cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _lock(folder.parent / f".{folder.name}.lock"):
            if not (_is_whole(folder) if repair else is_sealed(folder)):
                _build_alone(folder, fill, source)
    except OSError as error:
        raise ModelError(
            f"cannot write {folder} ({error.strerror or error}): make room, or name another folder in HILLINFER_CACHE"
        ) from error


def _is_whole(folder: Path) -> bool:
    try:
        verify(folder)
    except ModelError:
        return False
    return True


def _build_alone(folder: Path, fill: Callable[[Path], None], source: str) -> None:
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a builder that was killed
    partial.mkdir()
    try:
        fill(partial)
        files = {path.name: sha256(path) for path in sorted(partial.iterdir())}
        manifest = json.dumps({"source": source, "files": files}, indent=2)
        (partial / MANIFEST).write_text(manifest + "\n", encoding="utf-8")
        if folder.exists():  # incomplete or damaged, else nothing would be built
            shutil.rmtree(folder)
        partial.rename(folder)
    except BaseException:  # an interrupt too must not leave half a gigabyte behind
        shutil.rmtree(partial, ignore_errors=True)
        raise


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with path.open("w") as file:  # closing the file, or dying, releases the lock
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
