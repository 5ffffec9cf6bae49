"""Where the doctor looks: files below a root, environment variables, short-lived programs. Nothing here ever raises.

A file of /sys or /proc may be missing, unreadable, empty, not text, or vanish between two looks, and a driver in a bad
state answers with errors: all of that is "unknown" (None, or nothing in a list). Tests give another root.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_MOST = 1 << 20  # no file of /sys or /proc that is read here comes near


@dataclass(frozen=True)
class Machine:
    """A machine as its files and environment show it; by default this one."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def path(self, place: str) -> Path:
        """``"sys/module/xocl"`` below the root."""
        return self.root / place.lstrip("/")

    def text(self, path: Path) -> str | None:
        """The file's text without blanks around it; None when it cannot be read."""
        try:
            with path.open("rb", buffering=0) as file:
                return (file.read(_MOST) or b"").decode(errors="replace").strip()
        except (OSError, ValueError):
            return None

    def lines(self, path: Path) -> list[str]:
        """Its lines without blanks around them, empty ones left out."""
        return [line.strip() for line in (self.text(path) or "").splitlines() if line.strip()]

    def processor(self) -> str:
        """The processor's name, or at least its architecture."""
        names = (line for line in self.lines(self.path("proc/cpuinfo")) if line.startswith("model name"))
        return next((line.partition(":")[2].strip() for line in names), platform.machine())

    def number(self, path: Path) -> int | None:
        """``0x10ee`` or ``1``; None when the file holds no number."""
        return number(self.text(path))

    def entries(self, folder: Path) -> list[Path]:
        """What is in a folder, by name."""
        try:
            return sorted(folder.iterdir())
        except (OSError, ValueError):
            return []

    def exists(self, path: Path) -> bool:
        """Whether there is something of that name that can be looked at."""
        try:
            return path.exists()
        except (OSError, ValueError):
            return False

    def target(self, link: Path) -> Path | None:
        """Where a link of /sys leads, all links followed; None when it leads nowhere."""
        try:
            return link.resolve(strict=True)
        except (OSError, ValueError, RuntimeError):  # RuntimeError: a loop of links, before Python 3.13
            return None

    def run(self, command: Iterable[str | Path], seconds: float) -> tuple[int, str] | None:
        """Exit code and last line (of stdout, else of stderr) of a program; None when it cannot start or hangs."""
        try:
            done = subprocess.run(
                [str(word) for word in command],
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            return None
        said = (done.stdout.strip() or done.stderr.strip()).splitlines()
        return done.returncode, said[-1] if said else ""


def number(text: str | None) -> int | None:
    """The number that a text is, in C's notation; None when it is none."""
    try:
        return int(text or "", 0)
    except ValueError:
        return None
