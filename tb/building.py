"""What several processes may want to build at the same time is built by one of them; the others wait, and find it."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def building(folder: Path) -> Iterator[None]:
    """Only one process at a time builds in ``folder``. The lock, a file beside it, ends with the process."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / f".{folder.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
