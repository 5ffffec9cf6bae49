"""python -m scripts.xrt_binding: build the module into build/pyxrt, where XRT's headers are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = (Path("/usr/include/xrt/xrt/xrt_device.h"), Path("/opt/xilinx/xrt/include/xrt/xrt_device.h"))


def main() -> int:
    """0, or 2 when the headers are missing; CMake's own code when it fails."""
    if not any(header.exists() for header in HEADERS):
        print("pyxrt: XRT's headers are not on this machine: apt-get install libxrt-dev uuid-dev", file=sys.stderr)
        return 2
    build = ROOT / "build/pyxrt"
    configure = ["cmake", "-S", str(Path(__file__).parent), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release"]
    for command in ([*configure, f"-DPython_EXECUTABLE={sys.executable}"], ["cmake", "--build", str(build)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{done.stdout}{done.stderr}pyxrt: {' '.join(command)} failed", file=sys.stderr)
            return done.returncode
    print(build)
    return 0


if __name__ == "__main__":
    sys.exit(main())
