"""The environment in which XRT finds emulated cards: a folder in /tmp, and variables that lead there.

USER names the folder, because XRT makes its sockets in /tmp/$USER: so two environments never meet, and all of it goes
with the folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Final

from scripts.xrt_binding import build as binding
from tb.rtl import RegisterMap, make_open_rtl

from .errors import EmulationError
from .xclbin import Card, write_xclbin

ROOT: Final = Path(__file__).resolve().parents[2]
BUILD: Final = ROOT / "build"

_RUNTIME: Final = "libxrt_hwemu.so.2"
_PACKET: Final = 1 << 20

# The shim crashes when its message buffer has to grow, so the first message, which repeats this file, is the largest.
_INI: Final = """[Runtime]
runtime_log=null
[Emulation]
print_infos_in_console=false
print_warnings_in_console=false
suppress_infos=true
packet_size={packet}
[Debug]
pad={pad}
"""


@dataclass(frozen=True)
class Settings:
    """What is emulated: how many cards, what computes on them, and what they are."""

    cards: int = 1
    kernel: str = "native"
    card: Card = field(default_factory=Card)

    def __post_init__(self) -> None:
        if not 1 <= self.cards <= 16:
            raise EmulationError(f"--cards {self.cards}: 1 to 16 cards can be emulated")
        if self.kernel not in ("native", "rtl"):
            raise EmulationError(f"--kernel {self.kernel}: native or rtl")


def library_folder() -> Path:
    """Where XRT's libraries are. EmulationError names the package when they are missing."""
    multiarch = sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu"
    for folder in (Path("/usr/lib") / multiarch, Path("/opt/xilinx/xrt/lib")):
        if (folder / _RUNTIME).exists():
            return folder
    raise EmulationError(
        f"XRT's emulation ({_RUNTIME}) is not on this machine: apt-get install libxrt-dev uuid-dev unzip"
    )


def registers() -> RegisterMap:
    """Of the kernel as the open flow builds it; made when it is missing or old."""
    return RegisterMap.read(make_open_rtl(ROOT, BUILD / "rtl").registers)


def make(folder: Path, settings: Settings) -> dict[str, str]:
    """Fill the folder, which lies in /tmp; the variables to add to a command's environment."""
    if shutil.which("unzip") is None:
        raise EmulationError("XRT unpacks xclbins with unzip, which is missing: apt-get install unzip")
    try:
        metadata.version("protobuf")
    except metadata.PackageNotFoundError:
        raise EmulationError("the device process needs protobuf: pip install -e '.[emulation]'") from None
    (folder / "xrt").mkdir()
    (folder / "xrt/lib").symlink_to(library_folder())
    (folder / "xrt/version.json").write_text('{"BUILD_VERSION": "2.13.466"}', encoding="utf-8")  # PYNQ reads it
    (folder / "run").mkdir()
    (folder / "tmp").mkdir()
    (folder / "xrt.ini").write_text(_INI.format(packet=_PACKET, pad="x" * (_PACKET + (16 << 10))), encoding="utf-8")
    (folder / "emconfig.json").write_text(_emconfig(settings), encoding="utf-8")
    device = folder / "device.sh"
    device.write_text(_launcher(), encoding="utf-8")
    device.chmod(0o755)
    write_xclbin(folder / "qk_score.hw_emu.xclbin", registers(), settings.card)
    return {
        "XCL_EMULATION_MODE": "hw_emu",
        "XILINX_XRT": str(folder / "xrt"),
        "XRT_INI_PATH": str(folder / "xrt.ini"),
        "EMCONFIG_PATH": str(folder),
        "SDACCEL_EM_RUN_DIR": str(folder / "run"),
        "USER": folder.name,
        "TMPDIR": str(folder / "tmp"),  # what a command leaves there goes as well
        "HILLINFER_XCLBIN": str(folder / "qk_score.hw_emu.xclbin"),
        "HW_EMU_DEVICE": str(device),
        "HW_EMU_KERNEL": settings.kernel,
        "HW_EMU_ERRORS": str(folder / "errors"),
    }


def make_folder() -> Path:
    """A new folder in /tmp, where XRT wants its sockets."""
    return Path(tempfile.mkdtemp(prefix="hw_emu-", dir="/tmp"))


def complete(variables: Mapping[str, str], base: Mapping[str, str], python: Path) -> dict[str, str]:
    """``base`` with the variables, and with paths put before those that are there; ``python`` is what PATH finds.

    Our pyxrt is built when it is missing or old.
    """
    try:
        pyxrt = binding.build()
    except binding.BindingError as error:
        raise EmulationError(f"pyxrt is missing: {error}") from error
    first = {"PATH": python.parent, "PYTHONPATH": pyxrt, "LD_PRELOAD": shim_fixes()}
    paths = {name: os.pathsep.join(filter(None, [os.fspath(path), base.get(name, "")])) for name, path in first.items()}
    return dict(base) | dict(variables) | paths


def pynq_python() -> Path:
    """The Python of PYNQ's environment, which is made when it is missing."""
    command = ["bash", os.fspath(ROOT / "scripts/setup-pynq")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)  # what it has to say is on stderr
    if done.returncode:
        raise EmulationError("there is no environment with PYNQ")
    return Path(done.stdout.strip())


def shim_fixes() -> Path:
    """The library that is loaded before libc, compiled when it is missing or old."""
    source, library = Path(__file__).with_name("shim_fixes.cpp"), BUILD / "hw_emu/libshim_fixes.so"
    if not library.exists() or library.stat().st_mtime < source.stat().st_mtime:
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            raise EmulationError("no C++ compiler is on the PATH: apt-get install g++")
        library.parent.mkdir(parents=True, exist_ok=True)
        made = library.with_suffix(f".{os.getpid()}")
        command = [compiler, "-O2", "-shared", "-fPIC", os.fspath(source), "-o", os.fspath(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise EmulationError(f"{source.name} does not compile:\n{done.stderr}".rstrip())
        made.replace(library)
    return library


def _emconfig(settings: Settings) -> str:
    size = settings.card.memory_bytes >> 30
    device = {
        "Name": settings.card.platform,
        "HalMajorVersion": 1,
        "HalMinorVersion": 0,
        "DdrBanks": [{"Size": f"{max(1, size)}GB"}],
        "OclFreqency": settings.card.clock_mhz,  # spelt so by the shim
    }
    boards = [{"NumBoards": settings.cards, "Devices": [device]}]
    version = {"FileVersion": "2.0", "ToolVersion": "2022.1"}
    return json.dumps({"Version": version, "Platform": {"Boards": boards}}, indent=1)


def _launcher() -> str:
    """The device process is this Python's, whatever the command runs on, and sleeps as long as it means to."""
    path = os.pathsep.join(map(os.fspath, (ROOT, ROOT / "host", ROOT / "scripts")))
    return f"""#!/bin/sh
unset LD_PRELOAD PYTHONHOME
PYTHONPATH='{path}' exec '{sys.executable}' -m scripts.hw_emu.serve
"""
