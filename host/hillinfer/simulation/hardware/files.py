"""Hardware files: TOML, a table per part, ``{ value, source }`` per number."""

from __future__ import annotations

import json
import sys
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hillinfer.config import cache_home
from hillinfer.errors import SettingError, nearest
from hillinfer.simulation.hardware.box import Hardware
from hillinfer.whole_file import write_whole

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = "here"
"""The machine it runs on, once ``hillinfer simulate measure`` has measured it."""


def names() -> list[str]:
    """Boxes that are known by name."""
    shipped = [path.name for path in resources.files(__package__).iterdir() if path.name.endswith(".toml")]
    return [*sorted(name.removesuffix(".toml") for name in shipped), HERE]


def path_of_here() -> Path:
    """Where the figures of this machine are kept."""
    return cache_home() / "simulation" / f"{HERE}.toml"


def load(name: str | Path) -> Hardware:
    """A shipped box by name, this machine as "here", or a file by its path.

    SettingError for a name that is none, with the nearest; for a file that cannot be read; and for one with a number
    that is missing, negative or unknown, which it names.
    """
    text = str(name)
    if text == HERE:
        path = path_of_here()
        if not path.is_file():
            raise SettingError("this machine was not measured yet: run hillinfer simulate measure")
        return _read(path.read_text(), str(path))
    if text in names():
        return _read((resources.files(__package__) / f"{text}.toml").read_text(), text)
    path = Path(text)
    if not text or (not path.suffix and not path.exists()):
        raise SettingError(f"there is no hardware {text!r}{nearest(text, names())}")
    try:
        return _read(path.read_text(), text)
    except OSError as error:
        raise SettingError(f"the hardware file {path} cannot be read ({error.strerror}): check the name") from None
    except UnicodeDecodeError:
        raise SettingError(f"the hardware file {path} is not text in UTF-8") from None


def _read(text: str, where: str) -> Hardware:
    try:
        return Hardware.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SettingError(f"the hardware file {where} is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        told = {"missing": "is missing", "extra_forbidden": "is no field that is known"}.get(first["type"])
        fault = f"{field} {told or first['msg'].removeprefix('Value error, ')}".strip()
        raise SettingError(f"the hardware file {where}: {fault}") from None


def dump(hardware: Hardware, path: Path) -> None:
    """Write a box as a file that ``load`` reads, whole or not at all."""
    try:
        write_whole(path, "\n".join(_lines((), hardware.model_dump())) + "\n")
    except OSError as error:
        raise SettingError(f"the hardware file {path} cannot be written ({error.strerror})") from error


def _lines(path: tuple[str, ...], table: dict[str, Any]) -> list[str]:
    """A table's own values first, then its tables; a number is a table with a value."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict) or "value" in value}
    lines = ["", f"[{'.'.join(path)}]"] if path else []
    for key, value in plain.items():
        if value is not None:
            lines.append(f"{key} = {_inline(value)}")
    for key, value in table.items():
        if key not in plain:
            lines += _lines((*path, key), value)
    return lines


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_inline(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)
