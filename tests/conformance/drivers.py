"""The drivers under test, and how each is opened: as `hillinfer generate` opens it."""

from __future__ import annotations

import os
from pathlib import Path

from hillinfer.config import StoreSettings
from hillinfer.csd.contract import Device
from hillinfer.csd.registry import open_device
from hillinfer.kv.geometry import Geometry
from tests.hls import builds
from tests.rtl_device.build import rtl_library

VARIABLE = "HILLINFER_CONFORMANCE"
"""Names the drivers of this run, with commas; without it, those that run in any process."""

DEVICES = {"software": "software", "native": "native", "rtl": "rtl", "xrt": "xrt:0", "pynq": "pynq:0"}
WITH_P2P = ("xrt",)
_ANYWHERE = ("software", "native", "rtl")


def under_test() -> list[str]:
    named = os.environ.get(VARIABLE)
    drivers = named.split(",") if named else list(_ANYWHERE)
    assert set(drivers) <= set(DEVICES), f"{VARIABLE}={named}: known are {', '.join(DEVICES)}"
    return drivers


def store(driver: str, folder: Path, **settings: object) -> StoreSettings:
    """Settings of an engine on this driver; libraries that are built from source are built."""
    if driver == "rtl":
        rtl_library()
    elif driver == "native":
        builds.native_library()
    return StoreSettings(cold_dir=folder, device=DEVICES[driver], **settings)


def open_driver(
    driver: str, geometry: Geometry, folder: Path, region_tokens: int = 1 << 14, **settings: object
) -> Device:
    return open_device(store(driver, folder, **settings), geometry, region_tokens, lambda *_: None)
