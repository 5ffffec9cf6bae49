"""The devices by name; only the one that is used is imported."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hillinfer.config import StoreSettings, default_cold_dir
from hillinfer.csd.contract import Cast, Device, Record
from hillinfer.csd.images import find_image
from hillinfer.csd.kernel.board import Board
from hillinfer.csd.names import DeviceName, parse_devices
from hillinfer.kv.geometry import Geometry


def open_device(
    settings: StoreSettings, geometry: Geometry, region_tokens: int, record: Record, cast: Cast | None = None
) -> Device:
    """Open the devices that ``settings`` names, with their cold pool in its folder (the default one is made).

    region_tokens   most tokens a sequence may have
    record          tells a trace what the device did, see the contract
    cast            how the engine casts keys, where the geometry says that their copy is a fitted one

    DeviceError says what is missing; SettingError that devices do not go together.
    """
    names = parse_devices(settings.device)
    folder, create = settings.cold_dir or default_cold_dir(), settings.cold_dir is None
    if names == (DeviceName("software"),):
        from hillinfer.csd.software import SoftwareDevice

        return SoftwareDevice(
            geometry,
            folder,
            create=create,
            region_tokens=region_tokens,
            record=record,
            streamed=settings.device_keys == "stream",
        )
    from hillinfer.csd.kernel.device import KernelDevice
    from hillinfer.csd.kernel.scorer import KernelSettings

    with contextlib.ExitStack() as opened:
        boards = []
        for name in names:
            boards.append(open_board(name, settings.xclbin))
            opened.callback(boards[-1].close)
        opened.pop_all()  # from here on the device closes them, even if it cannot be made
    return KernelDevice(
        boards,
        geometry,
        folder,
        create=create,
        region_tokens=region_tokens,
        record=record,
        settings=KernelSettings(
            keys=settings.device_keys,
            key_format=geometry.key_format,
            copy="auto" if geometry.copy_dim is None else "integers",
            split=settings.device_split,
        ),
        fallback=settings.on_device_error == "fallback",
        cast=cast,
    )


def check_devices(settings: StoreSettings) -> None:
    """DeviceError for what a device lacks, as far as can be told before it is opened: libraries, modules, an image.

    Quick, so that nobody waits for a model to be loaded to learn of it.
    """
    for name in parse_devices(settings.device):
        if name.kind == "native":
            from hillinfer.csd import native

            native.find_library()
        elif name.kind == "rtl":
            from hillinfer.csd import rtl

            rtl.find_library()
        elif name.kind == "pynq":
            from hillinfer.csd.boards import pynq_card

            pynq_card.check_version()
        elif name.kind == "xrt":
            from hillinfer.csd.boards.xrt import binding

            binding.load_binding()
        if name.card:
            from hillinfer.csd.xclbin import fit_image

            fit_image(find_image(settings.xclbin), os.environ.get("XCL_EMULATION_MODE"))


def open_board(name: DeviceName, xclbin: Path | None = None) -> Board:
    """The board that runs the kernel for a device of any kind but "software"."""
    if name.kind == "native":
        from hillinfer.csd.boards.native import NativeBoard

        return NativeBoard()
    if name.kind == "rtl":
        from hillinfer.csd.boards.rtl import RtlBoard

        return RtlBoard()
    if name.kind == "pynq":
        from hillinfer.csd.boards import pynq

        return pynq.open_board(int(name.card), find_image(xclbin))
    from hillinfer.csd.boards import xrt

    return xrt.open_board(str(name), xclbin)
