"""The drivers by name; only the one that is used is imported."""

from __future__ import annotations

from pathlib import Path

from hillinfer.config import DEVICES, default_cold_dir
from hillinfer.csd.contract import Device, Record
from hillinfer.kv.geometry import Geometry


def open_device(name: str, geometry: Geometry, cold_dir: Path | None, region_tokens: int, record: Record) -> Device:
    """Open the device ``name`` with its cold pool in ``cold_dir`` (None: the default folder, made when missing)."""
    assert name in DEVICES
    from hillinfer.csd.software import SoftwareDevice

    folder = default_cold_dir() if cold_dir is None else cold_dir
    return SoftwareDevice(geometry, folder, create=cold_dir is None, region_tokens=region_tokens, record=record)
