"""The steps of a build, run: HLS, link, emulation's description, installation. Each leaves a record of itself."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import commands, platforms, provenance, tools
from .commands import HlsSettings
from .errors import VitisError
from .version import Version

_TAIL = 12  # lines of a failed tool's log that are repeated
# The kernel's clock in what v++ says of an image beside it: Type: DATA, Frequency: 300 MHz.
_DATA_CLOCK = re.compile(r"Type:\s*DATA\s+Frequency:\s*(\d+)\s*MHz")


def run(argv: list[str], log: Path, environment: Mapping[str, str] | None = None) -> None:
    """Run a tool in the folder of its log, output to the terminal and to the log; VitisError when it fails.

    AMD's tools leave files of their own wherever they are started.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    print("$", shlex.join(argv), flush=True)
    try:
        with (
            log.open("w", encoding="utf-8") as file,
            subprocess.Popen(
                argv,
                cwd=log.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, **(environment or {})},
            ) as process,
        ):
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                file.write(line)
    except OSError as error:
        raise VitisError(f"{argv[0]} cannot be run: {error.strerror}") from error
    if code := process.returncode:
        tail = log.read_text(encoding="utf-8").splitlines()[-_TAIL:]
        errors = [line for line in tail if "ERROR" in line] or tail
        raise VitisError("\n  ".join([f"{Path(argv[0]).name} failed with exit code {code} (log: {log})", *errors]))


def hls(root: Path, settings: HlsSettings) -> None:
    """Run steps of HLS; with export, the .xo is there afterwards and has a record."""
    environment = settings.environment()
    tool = tools.hls()
    sources = provenance.source_checksums(root)
    git = provenance.git_state(root)
    run(commands.hls(tool, root / commands.TCL), settings.work / "hls.log", environment)
    if settings.xo is not None and "export" in settings.steps:
        _require(settings.xo, tool.name)
        provenance.write(
            settings.xo,
            {
                "schema": provenance.SCHEMA,
                "tool": str(tool),
                "part": settings.part,
                "clock_mhz": settings.clock_mhz,
                "git": git,
                "built": provenance.now(),
                "sha256": {"xo": provenance.checksum(settings.xo), "sources": sources},
            },
        )


def link(target: str, platform: str, connectivity: Path, clock_mhz: int, xo: Path, xclbin: Path) -> None:
    """Link the .xo to a platform; the image is there afterwards and has a record that includes the .xo's."""
    commands.check_target(target)
    commands.check_clock(clock_mhz)
    tool = tools.linker()
    file = platforms.find(platform)
    for needed in (xo, connectivity):
        if not needed.is_file():
            raise VitisError(f"there is no {needed}")
    compiled = provenance.read(xo, "tool", "part", "git", "built", "sha256")
    if Version.of_banner(compiled["tool"]) != tool.version:
        raise VitisError(f"{xo} was made by {compiled['tool']}, but on PATH is {tool}: make clean-hw, and build again")
    xclbin.parent.mkdir(parents=True, exist_ok=True)
    argv = commands.link(tool, target, file, connectivity, clock_mhz, xo, xclbin)
    run(argv, xclbin.parent / "link.log")
    _require(xclbin, tool.name)
    provenance.write(
        xclbin,
        {
            "schema": provenance.SCHEMA,
            "kernel": commands.KERNEL,
            "target": target,
            "platform": platforms.key(platform),
            "part": compiled["part"],
            "clock_mhz": {"wanted": clock_mhz, "reached": reached_mhz(xclbin)},
            "tools": {"hls": compiled["tool"], "link": str(tool)},
            "git": compiled["git"],
            "built": {"xo": compiled["built"], "xclbin": provenance.now()},
            "sha256": {
                "xclbin": provenance.checksum(xclbin),
                "xo": compiled["sha256"]["xo"],
                "connectivity": provenance.checksum(connectivity),
                "sources": compiled["sha256"]["sources"],
            },
        },
    )


def reached_mhz(xclbin: Path) -> int | None:
    """The clock that the kernel got, from the text that v++ leaves beside an image; None when it left none.

    v++ lowers the clock by itself until the timing fits, and says so only there and in its log.
    """
    info = xclbin.with_name(xclbin.name + ".info")
    found = _DATA_CLOCK.search(info.read_text(encoding="utf-8", errors="replace")) if info.is_file() else None
    return int(found[1]) if found else None


def emconfig(platform: str, folder: Path) -> None:
    """Write folder/emconfig.json for hardware emulation on a platform."""
    program = tools.emconfigutil()
    file = platforms.find(platform)
    folder.mkdir(parents=True, exist_ok=True)
    run(commands.emconfig(program, file, folder), folder / "emconfig.log")
    _require(folder / "emconfig.json", "emconfigutil")


def install(xclbin: Path, folder: Path, extra: Mapping[str, Any]) -> Path:
    """Copy a linked image and its provenance into the folder of bitstreams; extra joins the provenance."""
    record = provenance.read(xclbin, "target", "platform", "clock_mhz")
    clock = f"{record['clock_mhz']['wanted']}MHz"
    image = folder / f"{commands.KERNEL}.{record['target']}.{record['platform']}.{clock}.xclbin"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The record goes first and last: an image is never there beside the record of another.
        provenance.record_path(image).unlink(missing_ok=True)
        shutil.copyfile(xclbin, image)
    except OSError as error:
        raise VitisError(f"{image} cannot be written: {error.strerror}. The image itself is {xclbin}") from error
    provenance.write(image, {**record, **extra})
    return image


def _require(file: Path, tool: str) -> None:
    if not file.is_file():
        raise VitisError(f"{tool} ended without an error but did not write {file}")
