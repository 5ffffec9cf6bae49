"""Packages that some metrics need and nobody else does."""

from __future__ import annotations

import importlib
from types import ModuleType

from hillinfer.errors import SettingError


def needed(name: str) -> ModuleType:
    """The module ``name`` of the extra "evaluation"; SettingError says how to get it where it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SettingError(f"this task's metric needs {name}: pip install 'hillinfer[evaluation]'") from error
