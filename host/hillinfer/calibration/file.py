"""Calibrations on disk: one small JSON file per device and shape in the user's cache folder, for its owner alone."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hillinfer.calibration.figure import Figure
from hillinfer.calibration.fingerprint import Fingerprint
from hillinfer.calibration.rates import Rates
from hillinfer.config import cache_home
from hillinfer.errors import CalibrationError
from hillinfer.whole_file import write_whole

_AGAIN = "run hillinfer calibrate again"


class Figures(BaseModel):
    """The four speeds, by the names of algorithms.md."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    f_c: Figure
    f_s: Figure
    B_c: Figure
    B_s: Figure


class Calibration(BaseModel):
    """What was measured where, and when (seconds since 1970)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["hillinfer calibration"] = "hillinfer calibration"
    version: Literal[1] = 1
    measured_at: float
    alpha: float
    where: Fingerprint
    figures: Figures

    @classmethod
    def now(cls, where: Fingerprint, figures: dict[str, Figure], alpha: float) -> Calibration:
        """Of figures that were just measured."""
        return cls(measured_at=time.time(), alpha=alpha, where=where, figures=Figures.model_validate(figures))

    @property
    def rates(self) -> Rates:
        """The medians."""
        f = self.figures
        return Rates(f.f_c.median, f.f_s.median, f.B_c.median, f.B_s.median)


def path_of(where: Fingerprint) -> Path:
    """Where the calibration of a device and shape is kept; which machine it is of stands inside."""
    device = "".join(letter if letter.isalnum() else "-" for letter in where.device)
    name = f"{device}-{where.device_keys}-{where.shape}-{where.key_format}-{where.compute}".replace(" ", "-")
    return cache_home() / "calibration" / f"{name.replace('/', '-')}.json"


def find(here: Fingerprint) -> Calibration | None:
    """The calibration for this machine, device and shape; None where none was made.

    CalibrationError for one that cannot be used: damaged, of another version, of another machine, or of this one
    before something was changed.
    """
    path = path_of(here)
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CalibrationError(f"the calibration {path} cannot be read ({error.strerror}): {_AGAIN}") from None
    except ValueError:
        raise CalibrationError(f"{path} is no calibration, it is not JSON: {_AGAIN}") from None
    if isinstance(content, dict) and content.get("version", 1) != 1:
        raise CalibrationError(f"the calibration {path} is of another version of hillinfer: {_AGAIN}")
    try:
        found = Calibration.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise CalibrationError(f"{path} is not a whole calibration ({where}: {first['msg']}): {_AGAIN}") from None
    differences = here.differences(found.where)
    if differences:
        raise CalibrationError(f"the calibration {path} is stale ({'; '.join(differences)}): {_AGAIN}")
    return found


def write(calibration: Calibration) -> Path:
    """Put it where ``find`` looks, whole or not at all, mode 0600; CalibrationError for a folder of no use."""
    path = path_of(calibration.where)
    try:
        write_whole(path, calibration.model_dump_json(indent=1) + "\n")
    except OSError as error:
        raise CalibrationError(
            f"the calibration cannot be written to {path} ({error.strerror}): set HILLINFER_CACHE to a folder that can"
        ) from error
    return path
