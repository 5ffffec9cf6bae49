"""Where output goes (the answer to stdout, talk about it to stderr), and how numbers are written for people."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import Any

from rich.console import Console
from rich.text import Text


def stdout() -> Console:
    """A console on the stdout of this moment; made anew, because tests and ``--json`` exchange it."""
    return Console(file=sys.stdout, highlight=False)


def stderr() -> Console:
    """A console on stderr, for progress and errors."""
    return Console(file=sys.stderr, highlight=False)


def complain(message: str) -> None:
    """One red line on stderr, whatever the message's own line breaks."""
    stderr().print(Text(" ".join(message.split()), style="red"), soft_wrap=True)


def drop_stdout() -> None:
    """Nothing more goes to stdout, which takes no more; what is left for it is dropped, or the end would fail, too."""
    with contextlib.suppress(OSError):  # io.UnsupportedOperation, too: of a test's stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_json(value: Any) -> None:
    """One JSON value on one line of stdout, in ASCII, so that no locale can spoil it."""
    print(json.dumps(value, default=str), flush=True)


def human_bytes(nbytes: float) -> str:
    """``1536`` → ``1.5 KiB``."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    step = 0
    while nbytes >= 1024 and step < len(units) - 1:
        nbytes /= 1024
        step += 1
    return f"{nbytes:.0f} {units[step]}" if step == 0 else f"{nbytes:.1f} {units[step]}"


def human_count(number: float) -> str:
    """``134515008`` → ``135 M``; a count of things, in powers of ten."""
    for unit, factor in (("G", 10**9), ("M", 10**6), ("k", 10**3)):
        if number >= factor:
            return f"{number / factor:.3g} {unit}"
    return f"{number:g}"
