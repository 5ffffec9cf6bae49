"""Faults that a test asks the emulated card for: HW_EMU_FAULT, read when the host loads the xclbin.

    die_after=N     the device process dies when launch N + 1 starts, as a card does that falls off the bus
    hang_after=N    launch N + 1 does not end until the host frees a buffer, and later ones write nothing; registers and
                    memory go on answering
    skip_after=N    launch N + 1 and all later ones end at once and write nothing
    slow=MS         a launch takes that many milliseconds at least

Several stand beside each other with commas between; ``1:slow=5`` is for card 1 alone.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from .errors import EmulationError

VARIABLE = "HW_EMU_FAULT"


@dataclass
class Faults:
    """What goes wrong, and after how many launches; None: never."""

    die_after: int | None = None
    hang_after: int | None = None
    skip_after: int | None = None
    slow: int = 0

    @classmethod
    def parse(cls, text: str, card: int = 0) -> Faults:
        """From the value of HW_EMU_FAULT. EmulationError when it cannot be understood."""
        known = {field.name for field in fields(cls)}
        found: dict[str, int] = {}
        for part in filter(None, text.split(",")):
            of, colon, what = part.rpartition(":")
            name, _, number = what.partition("=")
            if name not in known or not number.isdecimal() or (colon and not of.isdecimal()):
                raise EmulationError(
                    f"{VARIABLE}={text}: {part} is none of {', '.join(f'{k}=N' for k in sorted(known))}"
                )
            if not colon or int(of) == card:
                found[name] = int(number)
        return cls(**found)
