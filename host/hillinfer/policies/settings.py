"""A policy's settings as text: what they are, from its class; their values, from a command line."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hillinfer.errors import SettingError
from hillinfer.policies.base import Policy
from hillinfer.policies.budget import TokenBudget

_HELP = re.compile(r"(\w+)  +(\S.*)")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_KINDS = {
    "bool": "true or false",
    "int": "a whole number",
    "ints": "whole numbers with commas between (0,8,16)",
    "float": "a number",
    "str": "a word",
    "file": "a file",
    "budget": "a ratio (20%), a number of tokens (512) or bytes (64MiB)",
}


@dataclass(frozen=True)
class Setting:
    """One setting: its type (a key of ``_KINDS``), whether None is a value too, its default, and what it is."""

    name: str
    type: str
    optional: bool
    default: Any
    help: str


def settings_of(policy: type[Policy]) -> list[Setting]:
    """The settings of a policy, in the order of its fields; help comes from the docstrings of its class and bases.

    A docstring says ``name   what it is`` at the left, and goes on on lines that are indented.
    """
    hints = typing.get_type_hints(policy)
    said: dict[str, str] = {}
    for each in reversed(policy.__mro__):
        said |= _documented(each)
    return [
        Setting(field.name, *_kind(hints[field.name]), _plain(field.default), said.get(field.name, ""))
        for field in dataclasses.fields(policy)
    ]


def read(policy: type[Policy], name: str, text: str) -> Any:
    """The value of the setting ``name`` written as ``text``; SettingError if it is not of its type.

    A name that the policy does not know is left to ``registry.create``, which knows the nearest one.
    """
    setting = next((each for each in settings_of(policy) if each.name == name), None)
    if setting is None:
        return text
    if setting.optional and text.lower() == "none":
        return None
    try:
        return _convert(setting.type, text)
    except (KeyError, ValueError):
        raise SettingError(
            f"the setting {name} of {policy.name} is {_KINDS.get(setting.type, setting.type)}, not {text!r}"
        ) from None


def _convert(kind: str, text: str) -> Any:
    if kind == "bool":
        return _TRUTH[text.lower()]
    if kind == "budget":
        return TokenBudget.parse(text)
    if kind == "ints":
        return tuple(int(part) for part in text.split(","))
    return {"int": int, "float": float}.get(kind, str)(text)


def _kind(hint: Any) -> tuple[str, bool]:
    """The type's name, and whether None is a value too."""
    union = isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union
    options = typing.get_args(hint) if union else (hint,)
    kinds = [option for option in options if option is not types.NoneType]
    if TokenBudget in kinds:
        return "budget", len(kinds) < len(options)
    if Path in kinds:
        return "file", len(kinds) < len(options)
    kind = float if float in kinds else kinds[0]
    name = "ints" if typing.get_origin(kind) in (tuple, list, Sequence) else getattr(kind, "__name__", str(kind))
    return name, len(kinds) < len(options)


def _plain(default: Any) -> Any:
    return str(default) if isinstance(default, TokenBudget) else default


def _documented(policy: type) -> dict[str, str]:
    """What the docstring of this very class says of each setting."""
    said: dict[str, str] = {}
    name = ""
    for line in inspect.cleandoc(policy.__dict__.get("__doc__") or "").splitlines():
        if match := _HELP.fullmatch(line):
            name = match.group(1)
            said[name] = match.group(2).strip()
        elif name and line.startswith(" "):
            said[name] += " " + line.strip()
        else:
            name = ""
    return said
