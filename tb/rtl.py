"""Where the Verilog under test comes from, and where its metadata says the arguments' registers are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tb.building import building

TOP = "qk_score"
ARGUMENTS = ("query", "keys", "exps", "blocks", "n_tokens", "first_token", "shape", "format", "min_score", "tag")
CLOCK_NS = 4  # of the simulation; nothing depends on it
REGISTERS_VARIABLE = "QK_REGISTERS"  # tells the simulation, a process of its own, which register map to read


class RtlError(Exception):
    """RTL that cannot be simulated; the message says what is missing and how to get it."""


class RegisterMap(dict[str, int]):
    """Byte offsets in s_axi_control by argument name, and ``axi_error`` where the build has that register."""

    @classmethod
    def read(cls, path: Path) -> RegisterMap:
        """From hls2rtl's report.json, Vitis's kernel.xml or its driver header x*_hw.h; RtlError if incomplete."""
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            offsets = cls({name: register["offset"] for name, register in json.loads(text)["registers"].items()})
        elif path.suffix == ".xml":
            args = ElementTree.fromstring(text).iter("arg")
            offsets = cls({arg.attrib["name"]: int(arg.attrib["offset"], 16) for arg in args})
        else:
            defines = re.findall(r"^#define\s+X\w+?_CONTROL_ADDR_(\w+)_DATA\s+(0x[0-9a-fA-F]+)", text, re.MULTILINE)
            offsets = cls({name.lower(): int(offset, 16) for name, offset in defines})
        missing = [name for name in ARGUMENTS if name not in offsets]
        if missing:
            raise RtlError(f"{path} names no register of {', '.join(missing)}")
        return offsets

    @classmethod
    def from_environment(cls) -> RegisterMap:
        """The map of the build that this simulation runs."""
        return cls.read(Path(os.environ[REGISTERS_VARIABLE]))


@dataclass(frozen=True)
class Rtl:
    """Verilog of the kernel: its source files, files they read while simulating, and the file of the register map."""

    sources: tuple[Path, ...]
    data: tuple[Path, ...]
    registers: Path


def run_hls2rtl(source: Path, folder: Path) -> None:
    """Compile the kernel's C++ to Verilog in ``folder``; RtlError with what hls2rtl said when it refuses."""
    scripts = Path(__file__).resolve().parents[1] / "scripts"
    command = [sys.executable, "-m", "hls2rtl", str(source), "--top", TOP, "--output", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(scripts)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RtlError(f"hls2rtl refused the kernel:\n{done.stderr or done.stdout}".rstrip())


def make_open_rtl(root: Path, folder: Path) -> Rtl:
    """The open flow's RTL in ``folder``, made again when the kernel or the flow has changed since."""
    made = folder / f"{TOP}.sv"
    inputs = [*root.glob("hls/**/*.h"), *root.glob("hls/*.cpp"), *root.glob("scripts/hls2rtl/**/*.*v")]
    inputs += root.glob("scripts/hls2rtl/**/*.py")
    with building(folder):
        if not made.exists() or made.stat().st_mtime < max(path.stat().st_mtime for path in inputs):
            run_hls2rtl(root / "hls" / f"{TOP}.cpp", folder)
    return find_rtl(folder)


def find_rtl(folder: Path) -> Rtl:
    """The RTL in a folder that hls2rtl wrote, or in the folder of a Vitis HLS solution (2021.2) or component (2023+).

    RtlError names what the folder lacks.
    """
    tops = [path for suffix in (".v", ".sv") for path in folder.rglob(TOP + suffix)]
    if not tops:
        raise RtlError(f"{folder} holds no Verilog of {TOP}; make rtl writes that of the open flow")
    verilog = _newest(tops).parent
    sources = tuple(sorted(path for suffix in (".v", ".sv") for path in verilog.glob("*" + suffix)))
    beside = verilog / "report.json"  # of hls2rtl; Vitis has its metadata elsewhere in the solution
    maps = [beside] if beside.exists() else [*folder.rglob(f"x{TOP}_hw.h"), *folder.rglob("kernel.xml")]
    if not maps:
        raise RtlError(f"{folder} holds no register map: neither report.json nor x{TOP}_hw.h nor kernel.xml")
    registers = _newest(maps)
    RegisterMap.read(registers)
    return Rtl(sources, tuple(sorted(verilog.glob("*.dat"))), registers)


def _newest(paths: list[Path]) -> Path:
    return max(paths, key=lambda path: path.stat().st_mtime)
