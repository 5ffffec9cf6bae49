"""What a bitstream was made of, kept beside it as JSON, and whether it still is.

Each step of the build leaves a record beside what it made (``qk_score.xo.json``): the tool and its version, the git
revision and the sources' checksums at that moment. Installing an image joins the records, so that the provenance says
what was built, not what lies in the tree hours later.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from .errors import VitisError

SCHEMA = 1
_CHUNK = 1 << 20
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def checksum(file: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def kernel_sources(root: Path) -> list[Path]:
    """The C++ that goes into the FPGA: hls/qk_score.cpp and what it includes, directly or not, with quotes."""
    found: list[Path] = []
    waiting = [(root / "hls/qk_score.cpp").resolve()]
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.append(file)
        try:
            included = _INCLUDE.findall(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise VitisError(f"{file} cannot be read: {error.strerror}") from error
        waiting += [(file.parent / name).resolve() for name in included]
    return sorted(found)


def source_checksums(root: Path) -> dict[str, str]:
    """The kernel's sources relative to the repository -> SHA-256."""
    return {file.relative_to(root.resolve()).as_posix(): checksum(file) for file in kernel_sources(root)}


def git_state(root: Path) -> dict[str, Any]:
    """Revision, and whether tracked files differ from it; both None outside a git checkout."""
    revision = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--untracked-files=no")
    if revision is None or changes is None:
        return {"revision": None, "dirty": None}
    return {"revision": revision, "dirty": bool(changes)}


def now() -> str:
    """The time in UTC, ISO 8601, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def record_path(made: Path) -> Path:
    """Where the record of a file lies: beside it."""
    return made.with_name(made.name + ".json")


def write(made: Path, record: Mapping[str, Any]) -> None:
    """Write the record of a file; VitisError when the folder does not allow it."""
    path = record_path(made)
    try:
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise VitisError(f"{path} cannot be written: {error.strerror}") from error


def read(made: Path, *fields: str) -> dict[str, Any]:
    """The record of a file, which has these fields; VitisError when there is none, or it is not one."""
    path = record_path(made)
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise VitisError(f"{made} has no provenance: {path.name} is not beside it") from error
    except (OSError, ValueError) as error:
        raise VitisError(f"{path} cannot be read: {error}") from error
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        raise VitisError(f"{path} is not a record of schema {SCHEMA}")
    if lacks := [field for field in fields if field not in record]:
        raise VitisError(f"{path} lacks {', '.join(lacks)}")
    return record


def verify(image: Path, root: Path) -> list[str]:
    """What does not hold any more, a sentence each: the image against its record, the sources against the tree."""
    expected = read(image, "sha256")["sha256"]
    if not {"xclbin", "sources"} <= set(expected):
        raise VitisError(f"{record_path(image)} lacks the checksums of image and sources")
    if not image.is_file():
        raise VitisError(f"there is no image {image}")
    wrong = []
    if checksum(image) != expected["xclbin"]:
        wrong.append(f"{image.name} is not the file of its record: its SHA-256 differs")
    built: dict[str, str] = expected["sources"]
    here = source_checksums(root)
    changed = sorted(name for name in built.keys() | here.keys() if built.get(name) != here.get(name))
    if changed:
        wrong.append(f"the kernel's sources have changed since it was built (make xclbin): {', '.join(changed)}")
    return wrong


def _git(root: Path, *arguments: str) -> str | None:
    try:
        said = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.stdout.strip()
