"""Showing steps, and taking them."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence

from .step import Command, Setting, Step

Maker = Callable[[Setting], Step]


class Stopped(Exception):
    """The set-up cannot go on; the message says what to do, and to run it again."""


def show(steps: Sequence[Step]) -> str:
    """What is there, what would be run, why, and how it is undone; a paragraph per step."""
    return "\n\n".join(_paragraph(number, step) for number, step in enumerate(steps, 1))


def _paragraph(number: int, step: Step) -> str:
    state = {True: "done", False: "to do", None: "each time"}[step.done]
    if step.done is False and step.by_hand:
        state = "by hand"
    lines = [f"{number}. {step.name}: {step.what}   [{state}]", f"   found: {step.found}"]
    if not step.done:
        lines.append(f"   why:   {step.why}")
        lines += [f"   {line}" for line in step.by_hand]
        lines += [f"   $ {shlex.join(command)}" for command in ([] if step.by_hand else step.commands)]
        if step.undo:
            lines.append(f"   undo:  {step.undo}")
    return "\n".join(lines)


def apply(makers: Sequence[Maker], setting: Setting, say: Callable[[str], None] = print) -> None:
    """Take every step that is not done, in order. ``Stopped`` at the first that fails, or that a person must take."""
    for number, make in enumerate(makers, 1):
        step = make(setting)
        say(_paragraph(number, step))
        if step.done:
            continue
        if step.by_hand:
            raise Stopped(f"{step.name} is yours to do: {step.by_hand[0].rstrip(':')}; then run this again")
        if step.confirm:
            _confirm(step)
        for command in step.commands:
            _run(step, command)
        after = make(setting)
        if after.done is False:
            raise Stopped(f"{step.name} was run, but now: {after.found}. {_afterwards(after)}")


def _afterwards(step: Step) -> str:
    if step.confirm:
        return "Power off and on (a warm reboot does not load a shell), then run this again"
    return step.by_hand[0] if step.by_hand else "See what it printed above, and run this again"


def _confirm(step: Step) -> None:
    """Ask for the words in ``step.confirm``; anything else stops the set-up."""
    print(f"   This cannot be stopped half-way, and a failure may leave the card dead. Type {step.confirm} to go on:")
    if sys.stdin is None or not sys.stdin.isatty() or sys.stdin.readline().strip() != step.confirm:
        raise Stopped(f"{step.name} was not confirmed; nothing was done")


def _run(step: Step, command: Command) -> None:
    """Run it where the person sees it and can answer: xbmgmt asks once more before it flashes."""
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise Stopped(f"{step.name}: {command[0]} cannot be run ({error.strerror})") from error
    if code:
        raise Stopped(f"{step.name}: {shlex.join(command)} failed with {code}. Undo: {step.undo or 'nothing to undo'}")
