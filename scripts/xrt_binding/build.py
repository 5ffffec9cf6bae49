"""Build pyxrt with CMake and nanobind, when it is missing or its sources are newer."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tb.building import building

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build/pyxrt"
HEADERS = (Path("/usr/include/xrt/xrt/xrt_device.h"), Path("/opt/xilinx/xrt/include/xrt/xrt_device.h"))


class BindingError(Exception):
    """The module cannot be built; the message says what is missing."""


def build() -> Path:
    """The folder with the module in it, to be put on PYTHONPATH. BindingError says what is missing."""
    source = Path(__file__).parent
    module = FOLDER / f"pyxrt{sysconfig.get_config_var('EXT_SUFFIX')}"
    newest = max(path.stat().st_mtime for path in (source / "pyxrt.cpp", source / "CMakeLists.txt"))
    with building(FOLDER):
        if not (module.exists() and module.stat().st_mtime >= newest):
            _build(source)
    return FOLDER


def _build(source: Path) -> None:
    if not any(header.exists() for header in HEADERS):
        raise BindingError("XRT's headers are not on this machine: apt-get install libxrt-dev uuid-dev")
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # .venv has CMake
    if shutil.which("cmake", path=tools) is None:
        raise BindingError("there is no CMake on the PATH: scripts/setup puts one into .venv")
    shutil.rmtree(FOLDER, ignore_errors=True)  # what another source folder left would be refused
    configure = ["cmake", "-S", str(source), "-B", str(FOLDER), "-DCMAKE_BUILD_TYPE=Release"]
    for command in ([*configure, f"-DPython_EXECUTABLE={sys.executable}"], ["cmake", "--build", str(FOLDER), "-j2"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"PATH": tools})
        if done.returncode:
            raise BindingError(f"{done.stdout}{done.stderr}{' '.join(command)} failed")
