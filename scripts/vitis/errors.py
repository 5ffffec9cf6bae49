"""The one error a user sees: a sentence that says what is wrong and how to go on."""


class VitisError(Exception):
    """Something that the user can mend: a missing tool, a wrong argument, a report that is not there."""
