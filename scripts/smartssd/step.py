"""One step of the set-up, and what all steps are told."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from hillinfer.doctor import Machine, pci

ROOT = Path(__file__).resolve().parents[2]
Command = tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """What to do, as things stand at this moment.

    name       how the command line calls it
    what, why  a line each
    found      what is there now
    done       None: cannot be seen on the machine, so the step is taken each time
    commands   run by ``--apply`` when it is not done
    by_hand    lines for a person, when the step is theirs; the set-up stops there until it is done
    confirm    what has to be typed before the commands run: they can leave hardware unusable
    undo       how to get back
    """

    name: str
    what: str
    why: str
    found: str
    done: bool | None
    commands: tuple[Command, ...] = ()
    by_hand: tuple[str, ...] = ()
    confirm: str = ""
    undo: str = ""


@dataclass(frozen=True)
class Setting:
    """The machine, and what the person who sets it up has said.

    packages  folder with the packages that were downloaded from AMD
    wanted    addresses of the cards to set up, without the function's number; empty: all there are
    cold_dir  folder of the cold pool; None: not decided
    flash     whether shells may be flashed
    """

    machine: Machine = field(default_factory=Machine)
    packages: Path = Path()
    wanted: tuple[str, ...] = ()
    cold_dir: Path | None = None
    flash: bool = False
    repository: Path = ROOT

    @property
    def cards(self) -> list[pci.Card]:
        """The cards to set up, as they are now."""
        there = pci.cards(pci.functions(self.machine), self.machine)
        return [card for card in there if not self.wanted or card.slot in self.wanted]

    def package(self, pattern: str) -> Path | None:
        """The newest by name of the downloaded packages that a pattern fits."""
        found = sorted(self.packages.glob(pattern)) if self.packages.is_dir() else []
        return found[-1].absolute() if found else None


def as_root(*words: str | Path) -> Command:
    """A command that needs root, for whoever runs this."""
    return (*(() if os.geteuid() == 0 else ("sudo",)), *map(str, words))
