"""What a measured speed belongs to: the machine, the device, the drive of the cold pool and the shape of a row."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import psutil
import torch
from pydantic import BaseModel, ConfigDict

from hillinfer import _native
from hillinfer.config import StoreSettings, default_cold_dir
from hillinfer.doctor.machine import Machine
from hillinfer.doctor.mounts import mount_of
from hillinfer.kv.geometry import Geometry


class Fingerprint(BaseModel):
    """Where a calibration holds; a change of any field makes it stale.

    cores    processors this process may use; memory_bytes: of the machine
    variant  the native scorer's instruction set
    drive    file system, source and device number below the cold folder
    device   as it is named; device_keys: where a card's keys lie
    compute  what attends: "cpu", or the name of a GPU
    shape    KV heads × queries per head × head dimension, and the type of keys and values
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    processor: str
    cores: int
    memory_bytes: int
    kernel: str
    variant: str
    drive: str
    device: str
    device_keys: str
    compute: str
    shape: str
    key_format: str

    def differences(self, other: Fingerprint) -> list[str]:
        """What is not the same in ``other``, in words: "kernel 6.1 here, 6.5 there"."""
        mine, others = self.model_dump(), other.model_dump()
        return [
            f"{name.replace('_', ' ')} {mine[name]} here, {others[name]} there"
            for name in mine
            if mine[name] != others[name]
        ]


def fingerprint(
    settings: StoreSettings, geometry: Geometry, compute: torch.device, key_format: str = "int8"
) -> Fingerprint:
    """Of this machine, with these settings, for rows of this geometry."""
    return Fingerprint(
        processor=Machine().processor(),
        cores=usable_cores(),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        variant=_native.variant(),
        drive=_drive(settings.cold_dir or default_cold_dir()),
        device=settings.device,
        device_keys=settings.device_keys,
        compute=torch.cuda.get_device_name(compute) if compute.type == "cuda" else compute.type,
        shape=shape_name(geometry),
        key_format=key_format,
    )


def shape_name(geometry: Geometry) -> str:
    """``3x3x64-float32``."""
    dtype = str(geometry.dtype).removeprefix("torch.")
    return f"{geometry.kv_heads}x{geometry.group}x{geometry.head_dim}-{dtype}"


def usable_cores() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _drive(folder: Path) -> str:
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:  # it will be made there
        folder = folder.parent
    mount = mount_of(Machine(), folder.resolve())
    return "unknown" if mount is None else f"{mount.type} on {mount.source} ({mount.device})"
