"""What can go wrong, and how it is told: one line with file, line, and the rule that was broken."""

from __future__ import annotations

import os
from dataclasses import dataclass

INSTALL = "pip install ziglang==0.17.1 llvmlite==0.50.0"

RULES: dict[str, str] = {
    "c++": "the source is C++14 that clang accepts",
    "pragma": "pragmas are PIPELINE (II=1), UNROLL (whole), DATAFLOW, STREAM, INTERFACE, and hints that change nothing",
    "top": "the top declares streams and calls processes, unconditionally and with its own arguments",
    "process": "a process is a non-static void function over streams, m_axi pointers and integers",
    "interface": "a pointer of the top has an m_axi bundle of its own; other arguments are 32- or 64-bit integers",
    "stream": "a stream has exactly one process that writes it and one that reads it",
    "stream-access": "one iteration of a loop reads or writes a stream at most once",
    "non-blocking": "streams are read and written blocking only",
    "loop": "loops of a process are pipelined, not nested, with one exit; inner loops are unrolled",
    "burst": "an m_axi pointer is accessed as p[i], i = 0, 1, 2 ... up to a count known before the loop, once a turn",
    "memory": "a local array is accessed by index, one element at a time, in its own type",
    "pointer": "pointers are not computed, cast or stored",
    "float": "there are no floating-point values",
    "division": "there is no division, but of unsigned integers by constant powers of two",
    "recursion": "functions do not call themselves",
    "call": "every function called is defined in the source; there is no library at run time",
    "global": "there are no global or static variables: a process keeps nothing between launches",
    "mixed-sign": "signed and unsigned integers are not compared",
    "width": "integers have 1 to 4096 bits",
    "unsupported": "only integer operations have hardware",
}


@dataclass(frozen=True)
class Location:
    """A line of the user's source."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def located(file: str, line: int, folder: str = "") -> Location:
    """A location whose file is named from the working folder, if it is in there. folder: where relative names start."""
    path = os.path.normpath(os.path.join(folder or os.getcwd(), file))
    below = os.path.relpath(path)
    return Location(path if below.startswith("..") else below, line)


class RuleError(Exception):
    """The program breaks a rule of the language. ``rule`` is a key of RULES."""

    def __init__(self, rule: str, message: str, location: Location | None = None) -> None:
        assert rule in RULES, rule
        super().__init__(message)
        self.rule, self.message, self.location = rule, message, location

    def __str__(self) -> str:
        where = f"{self.location}: " if self.location else ""
        return f"{where}{self.message} [{self.rule}]"


class ToolError(Exception):
    """A tool that the flow needs is missing, of the wrong version, or failed; the message names the remedy."""
