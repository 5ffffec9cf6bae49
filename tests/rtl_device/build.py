"""Where the tests have the library of the kernel's RTL from: built unless build/sim has it already."""

from __future__ import annotations

import functools
from pathlib import Path

from scripts.rtl_device.build import build_library

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def rtl_library() -> Path:
    return build_library(ROOT, ROOT / "build" / "rtl")
