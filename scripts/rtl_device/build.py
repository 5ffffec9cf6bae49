"""The library: qk_rtl.cpp and Verilator's C++ of the open flow's RTL, in one shared object."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tb.rtl import TOP, RegisterMap, make_open_rtl
from tb.verilate import build

LIBRARY = "libqk_rtl.so"
SOURCE = Path(__file__).with_name("qk_rtl.cpp")
HEADER = Path(__file__).with_name("qk_rtl.h")
_CONTROL = {"control": 0}  # ap_ctrl_chain, where every kernel of Vitis has it


def build_library(root: Path, folder: Path) -> Path:
    """Build the library into ``folder``, from the RTL in ``root``/build/rtl (made when missing or old); its path.

    RtlError when a tool is missing, or something does not compile.
    """
    rtl = make_open_rtl(root, root / "build" / "rtl")
    includes = root / "build" / "sim" / "include"
    includes.mkdir(parents=True, exist_ok=True)
    registers = includes / "qk_registers.h"
    _write_if_changed(registers, _register_table(RegisterMap.read(rtl.registers)))
    abi = root / "hls" / "qk_abi.h"
    compile_flags = ["-fPIC", "-fvisibility=hidden", *(f"-I{path.parent}" for path in (HEADER, abi, registers))]
    flags = [word for flag in compile_flags for word in ("-CFLAGS", flag)]
    built = build(rtl, root / "build" / "sim", SOURCE, [*flags, "-LDFLAGS", "-shared"], (HEADER, abi, registers)) / TOP
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / LIBRARY
    # Never written in place: a process that has it loaded keeps the old file.
    fresh = folder / f".{LIBRARY}.{os.getpid()}"
    shutil.copy2(built, fresh)
    os.utime(fresh)
    fresh.replace(library)
    return library


def _register_table(registers: RegisterMap) -> str:
    rows = "".join(f'    {{"{name}", {offset}}},\n' for name, offset in (_CONTROL | registers).items())
    return f"constexpr struct {{\n  const char *name;\n  int offset;\n}} kRegisters[] = {{\n{rows}}};\n"


def _write_if_changed(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
