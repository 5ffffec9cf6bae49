"""The commands. Exit codes of ``run``: the command's own; 124 at the deadline, 70 when a card would have hung."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tb.rtl import RtlError

from . import environment
from .environment import Settings
from .errors import EmulationError
from .run import run
from .xclbin import Card, write_xclbin


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python -m scripts.hw_emu", description="XRT's own runtime against emulated SmartSSDs (docs/emulation.md)."
    )
    subs = top.add_subparsers(dest="what", required=True, metavar="COMMAND")
    sub = subs.add_parser("run", help="run a command in an environment with emulated cards")
    sub.add_argument("--cards", type=int, default=1, help="how many (default: 1)")
    sub.add_argument("--kernel", default="native", help="native (C simulation, default) or rtl (Verilator)")
    sub.add_argument("--deadline", type=float, default=120.0, metavar="SECONDS", help="default: 120")
    sub.add_argument("--memory-mb", type=int, default=4096, help="of each card (default: 4096)")
    sub.add_argument("--pynq", action="store_true", help="in PYNQ's environment, build/pynq-venv")
    sub.add_argument("command", nargs="+", metavar="-- COMMAND", help="what to run, and its arguments")
    sub = subs.add_parser("xclbin", help="write an xclbin for the emulation")
    sub.add_argument("--output", type=Path, required=True, help="file to write")
    sub.add_argument("--memory-mb", type=int, default=4096, help="of the card (default: 4096)")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code. Errors are a message, never a traceback."""
    arguments = parser().parse_args(argv)
    try:
        card = Card(memory_bytes=arguments.memory_mb << 20)
        if arguments.what == "xclbin":
            write_xclbin(arguments.output, environment.registers(), card)
            return 0
        settings = Settings(arguments.cards, arguments.kernel, card)
        python = environment.pynq_python() if arguments.pynq else Path(sys.executable)
        return run(arguments.command, settings, arguments.deadline, python=python)
    except (EmulationError, RtlError) as error:
        print(f"hw_emu: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
