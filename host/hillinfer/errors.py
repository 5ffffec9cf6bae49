"""Errors a person can act on: each message says what is wrong and names the fix."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


class HillInferError(Exception):
    """Base of every error this package raises on purpose; the command line prints it without a traceback."""


class SettingError(HillInferError, ValueError):
    """A setting is out of range or contradicts another one."""


class ModelError(HillInferError):
    """The model cannot be found, loaded or served by the engine."""


class DocumentError(HillInferError):
    """The prompt or document cannot be used (missing, empty, not UTF-8, too long)."""


class ProfileError(HillInferError):
    """A head profile cannot be read, written, or is of another model."""


class CalibrationError(HillInferError):
    """A calibration cannot be read or written, or is of another machine."""


class MemoryBudgetError(SettingError):
    """A tier's byte budget is too small for the work, or larger than the machine."""


class ColdPoolError(HillInferError):
    """The cold folder cannot be used: missing, read-only, or the device behind it failed."""


class ColdPoolFull(ColdPoolError):
    """The file system of the cold folder has no room left."""


class CorruptRecordError(ColdPoolError):
    """Bytes read back from the cold pool are not the bytes that were written."""


class DeviceError(HillInferError):
    """A computational storage device refused, failed or returned something that is not a Score Block."""


class DeviceFull(DeviceError):
    """A computational storage device has no memory left for what was asked of it."""


def nearest(word: str, known: Sequence[str]) -> str:
    """The end of a message about a word that is not known: the nearest of those that are, or all of them."""
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f": did you mean {close[0]!r}?"
    return f": known are {', '.join(known)}" if known else ": it has none"
