"""Where the platform (the card's shell) is. The SmartSSD's is the default; its names are UG1382's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from .errors import VitisError

SMARTSSD = "xilinx_u2_gen3x4_xdma_gc_2_202110_1"
SMARTSSD_PART = "xcku15p-ffva1156-2LV-e"


def key(platform: str) -> str:
    """The name of a platform, whether it was given as a name or as the path of its .xpfm file."""
    return Path(platform).name.removesuffix(".xpfm")


def repositories() -> list[Path]:
    """The folders where v++ looks for platforms, in its order, that exist."""
    named = os.environ.get("PLATFORM_REPO_PATHS", "").split(":")
    vitis = os.environ.get("XILINX_VITIS")
    installed = [Path(vitis, "platforms"), Path(vitis, "base_platforms")] if vitis else []
    candidates = [Path(name) for name in named if name] + installed + [Path("/opt/xilinx/platforms")]
    return [folder for folder in dict.fromkeys(candidates) if folder.is_dir()]


def find(platform: str) -> Path:
    """The .xpfm file of a platform that was given by name or by path."""
    if platform.endswith(".xpfm") or "/" in platform:
        path = Path(platform)
        if path.is_file():
            return path.resolve()
        raise VitisError(f"there is no platform file {platform}")
    searched = repositories()
    for file in _files(searched):
        if file.stem == platform:
            return file.resolve()
    there = ", ".join(sorted({file.stem for file in _files(searched)})) or "none"
    raise VitisError(
        f"platform {platform} is not installed (PLATFORM=<name or .xpfm file> chooses another).\n"
        f"  Searched: {', '.join(map(str, searched)) or 'no folder: PLATFORM_REPO_PATHS is empty'}\n"
        f"  Found:    {there}\n"
        f"  Install:  the platform's development package from AMD's SmartSSD page ({SMARTSSD.replace('_', '-')}-dev),\n"
        f"            or export PLATFORM_REPO_PATHS=<the folder that holds the platform's folder>"
    )


def _files(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(folder.glob("*.xpfm"))
        yield from sorted(folder.glob("*/*.xpfm"))
