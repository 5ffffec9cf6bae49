"""The command line. Exit codes: 0 all shown or done, 1 a step failed or waits for a person, 2 wrong arguments."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hillinfer.doctor import Machine

from . import card, drive, run, software, system, xrt
from .step import Setting

STEPS: dict[str, run.Maker] = {
    "system": system.system,
    "headers": system.headers,
    "card": card.present,
    "xrt": xrt.package,
    "drivers": xrt.drivers,
    "access": xrt.access,
    "platform": card.platform,
    "shell": card.shell,
    "validate": card.validate,
    "p2p": card.p2p,
    "cold": drive.cold_folder,
    "hillinfer": software.environment,
    "pyxrt": software.pyxrt,
    "image": software.image,
    "doctor": software.doctor,
}
"""In the order in which they depend on each other."""


def parser() -> argparse.ArgumentParser:
    """The options."""
    top = argparse.ArgumentParser(
        prog="scripts/smartssd/setup",
        description="Set up a machine with SmartSSDs. Shows what it would do; --apply does it. See docs/smartssd.md.",
    )
    top.add_argument("--apply", action="store_true", help="take the steps that are not done, until one stops it")
    top.add_argument("--flash", action="store_true", help="with --apply: also flash shells, after asking")
    names = ", ".join(STEPS)
    top.add_argument("--only", nargs="+", choices=STEPS, metavar="STEP", help=f"these steps alone, of {names}")
    top.add_argument("--skip", nargs="+", choices=STEPS, metavar="STEP", default=[], help="all but these steps")
    top.add_argument("--packages", type=Path, default=Path("downloads"), help="folder of AMD's packages (downloads)")
    top.add_argument("--card", action="append", default=[], metavar="ADDRESS", help="this card only, as 0000:05:00")
    top.add_argument("--cold-dir", type=Path, help="folder of the cold pool (default: on the card's drive)")
    return top


def main(argv: Sequence[str] | None = None, machine: Machine | None = None) -> int:
    """Show or take the steps; the exit code."""
    arguments = parser().parse_args(argv)
    names = [name for name in STEPS if name in (arguments.only or STEPS) and name not in arguments.skip]
    wanted = tuple(address.partition(".")[0] for address in arguments.card)
    setting = Setting(machine or Machine(), arguments.packages, wanted, arguments.cold_dir, arguments.flash)
    makers = [STEPS[name] for name in names]
    try:
        if arguments.apply:
            run.apply(makers, setting)
        else:
            print(run.show([make(setting) for make in makers]))
            print(
                "\nNothing was run. --apply takes the steps that are to do; docs/smartssd.md has all of this in prose."
            )
    except run.Stopped as stop:
        print(f"smartssd: {stop}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("smartssd: stopped; what was done stays done, and running this again goes on", file=sys.stderr)
        return 130
    return 0
