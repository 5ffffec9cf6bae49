"""What the doctor says of one thing: whether it is there, what that means, and how to get it."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class State(str, enum.Enum):
    """``missing`` alone keeps a device from running; ``warning`` costs something; ``unneeded`` is for other devices."""

    OK = "ok"
    WARNING = "warning"
    MISSING = "missing"
    UNNEEDED = "not needed"


@dataclass(frozen=True)
class Finding:
    """One line of the report.

    subject  what part of the machine it belongs to: one heading of the table
    name     what was looked at
    state    how it stands with it, for the device that was chosen
    found    what is there, in a few words
    means    what follows from it; never empty for a warning or something missing
    fix      the command or the step that changes it; never empty for a warning or something missing
    """

    subject: str
    name: str
    state: State
    found: str
    means: str = ""
    fix: str = ""


def bad(needed: bool, otherwise: State = State.MISSING) -> State:
    """The state of what is not as it should be: ``otherwise`` when the device needs it, else not needed."""
    return otherwise if needed else State.UNNEEDED


def good(needed: bool) -> State:
    """The state of what is as it should be."""
    return State.OK if needed else State.UNNEEDED
