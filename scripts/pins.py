"""Print the constraints file fitted to the torch at hand, for ``pip install -c``.

torch is pinned to the installed version, whatever it is: no later step may replace it. When it is not the version the
constraints name, the pins of the packages it requires itself are left out, since it may demand others.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path


def normal(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def package(line: str) -> str:
    """The package a line of requirements is about; empty for comments and blank lines."""
    match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", line)
    return normal(match.group()) if match else ""


def fit(lines: Iterable[str], version: str, requires: Iterable[str]) -> Iterator[str]:
    """The lines of the constraints that hold beside torch ``version``, which requires ``requires``."""
    lines = list(lines)
    own = f"torch=={version.split('+')[0]}" in lines
    free = {"torch"} if own else {"torch", *map(package, requires)}
    yield f"torch=={version}"
    yield from (line for line in lines if package(line) not in free)


def main() -> None:
    """Read the constraints file named on the command line; ``metadata.PackageNotFoundError`` without torch."""
    torch = metadata.distribution("torch")
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    print("\n".join(fit(lines, torch.version, torch.requires or [])))


if __name__ == "__main__":
    main()
