"""Builds of the kernel's library: as the project makes it, by other compilers and headers, and of altered sources."""

from __future__ import annotations

import functools
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hillinfer.csd.native import LIBRARY
from tb.building import building

_INSTALL = {"hls4ml": "pip install --no-deps hls4ml==1.3.0", "ziglang": "pip install ziglang==0.17.1"}
HLS = Path(__file__).resolve().parents[2] / "hls"


def run(command: Sequence[str | Path]) -> str:
    """What the command printed; what it complained about, as an AssertionError, when it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def by_cmake(build: Path, source: Path = HLS, *options: str) -> Path:
    """The library, by the project's CMakeLists.txt and the system's compiler."""
    cmake = _cmake()
    run([cmake, "-S", source, "-B", build, *options])
    run([cmake, "--build", build])
    return build / LIBRARY


@functools.cache
def native_library() -> Path:
    """The library where the package looks for it, from the sources as they are."""
    folder = HLS.parent / "build" / "native"
    with building(folder):
        return by_cmake(folder)


def _cmake() -> str:
    """The one beside this Python, which `make setup` installs, before the system's."""
    found = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    assert found is not None, "cmake is missing: pip install cmake"
    return found


def altered(folder: Path, file: str, old: str, new: str) -> Path:
    """A copy of the kernel in which ``old``, which stands once in ``file``, is ``new``."""
    copy = folder / "hls"
    shutil.copytree(HLS, copy)
    text = (copy / file).read_text()
    assert text.count(old) == 1, f"{file} holds {text.count(old)} times: {old}"
    (copy / file).write_text(text.replace(old, new))
    return copy


def amd_headers() -> Path:
    """AMD's ap_int.h and hls_stream.h, which hls4ml carries."""
    return _package("hls4ml") / "templates" / "vivado" / "ap_types"


def by_clang(build: Path, *includes: Path, defines: Sequence[str] = ()) -> Path:
    """The library by clang (of ziglang), with g++'s standard library: its own would take a minute to build."""
    _package("ziglang")
    listing = subprocess.run(["g++", "-E", "-v", "-x", "c++", "/dev/null"], capture_output=True, text=True).stderr
    search = re.search(r"#include <\.\.\.> search starts here:\n(.*?)End of search list", listing, re.S)
    assert search is not None
    standard = [path for path in search[1].split() if "c++" in path]
    build.mkdir(parents=True, exist_ok=True)
    run(
        [
            *(sys.executable, "-m", "ziglang", "c++", "-std=c++14", "-O2", "-g0", "-fno-sanitize=all", "-fPIC", "-w"),
            *("-fvisibility=hidden", "-nostdinc++"),
            *(f"-I{path}" for path in (*includes, *standard)),
            *(f"-D{name}" for name in defines),
            *("-c", HLS / "native.cpp", "-o", build / "native.o"),
        ]
    )
    run(["g++", "-shared", build / "native.o", "-o", build / LIBRARY])
    return build / LIBRARY


def _package(name: str) -> Path:
    """The folder of an installed package, without importing it; an AssertionError that says how to install it."""
    found = importlib.util.find_spec(name)
    assert found is not None, f"{name} is missing: {_INSTALL[name]}"
    assert found.origin is not None
    return Path(found.origin).parent
