"""Reports read from disk: there, missing, or not what this version reads; never an exception."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from hillinfer.errors import HillInferError
from hillinfer.figures.reports import Report

T = TypeVar("T")
R = TypeVar("R", bound=Report)


@dataclass(frozen=True)
class Source(Generic[T]):
    """What a chapter is made from.

    file      name in the folder of reports
    command   makes it
    read      what turns the file into what chapters use; may raise HillInferError, OSError or ValueError
    """

    file: str
    command: str
    read: Callable[[Path], T]


@dataclass(frozen=True)
class Found(Generic[T]):
    """content: None where there is none; then ``problem`` says why. day: when the file was written."""

    source: Source[T]
    content: T | None
    problem: str = ""
    broken: bool = False
    day: str = ""


def report(file: str, command: str, kind: type[R]) -> Source[R]:
    """A JSON report of a command's."""
    return Source(file, command, lambda path: kind.model_validate_json(path.read_bytes()))


def find(source: Source[T], folder: Path) -> Found[T]:
    """Read it if it is there."""
    path = folder / source.file
    if not path.is_file():
        return Found(source, None, "Not measured yet.")
    day = datetime.fromtimestamp(path.stat().st_mtime).date().isoformat()
    try:
        return Found(source, source.read(path), day=day)
    except ValidationError as error:
        return Found(source, None, f"{source.file} cannot be shown: {_first(error)}.", broken=True)
    except (HillInferError, OSError, ValueError) as error:
        return Found(source, None, f"{source.file} cannot be shown: {str(error).rstrip('.')}.", broken=True)


def _first(error: ValidationError) -> str:
    """What is wrong with a file, in words: its first fault."""
    fault = error.errors()[0]
    where = ".".join(map(str, fault["loc"]))
    kind = fault["type"]
    if kind == "json_invalid":
        return "it is no JSON, or was cut short"
    if kind == "missing":
        return f"it has no “{where}”, so it is of another version or another command"
    if kind == "literal_error":
        return f"its {where} is {fault['input']!r} and this version reads {fault['ctx']['expected']}"
    return f"its “{where}” is not what this version writes ({fault['msg'].lower()})"
