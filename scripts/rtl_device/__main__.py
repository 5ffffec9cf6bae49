"""python -m scripts.rtl_device [--output FOLDER]: build libqk_rtl.so, the kernel's RTL as a library (qk_rtl.h)."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.rtl_device.build import build_library
from tb.rtl import RtlError

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """The command line; 2 when a tool is missing or something does not compile."""
    parser = argparse.ArgumentParser(prog="rtl-device", description="Build the kernel's RTL as a shared library.")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "rtl", help="folder of the library")
    try:
        print(build_library(ROOT, parser.parse_args().output))
    except RtlError as error:
        print(f"rtl-device: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
