"""The errors of the emulation."""


class EmulationError(Exception):
    """Something that the user can mend: a missing package, a wrong argument. The message says how."""


class CardError(Exception):
    """What a card would answer with a hang or a reboot: memory that was never written, an address that is nobody's."""
