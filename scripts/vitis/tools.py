"""Which of AMD's tools are on PATH, and in which version. What is missing is told once, with the way out."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import VitisError
from .version import NEWEST, OLDEST, RECOMMENDED, VITIS_RUN, Version

# Each tool with the argument that makes it print its version.
_VERSION_ARGUMENT = {"v++": "--version", "vitis_hls": "-version", "vitis-run": "--version"}
_PROBE_SECONDS = 120  # the first start on a network drive is slow

WITHOUT_VITIS = "Works without Vitis: make csim, rtl, lint-rtl, cosim, bench-kernel, synth-estimate."


@dataclass(frozen=True)
class Tool:
    """A tool that was found and asked for its version."""

    name: str
    path: Path
    version: Version

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


class MissingTool(VitisError):
    """Tools that are not on PATH; what: their names as a sentence would have them."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(
            f"{what} not found on PATH.\n"
            f"  Needs:  Vitis {OLDEST} to {NEWEST} ({RECOMMENDED} is the one AMD names for the SmartSSD), and then\n"
            f"          source <where Vitis is>/Vitis/<version>/settings64.sh\n"
            f"  {WITHOUT_VITIS}"
        )


def probe(name: str) -> Tool | None:
    """The tool on PATH, or None. VitisError when it is there but does not say a version that works here."""
    path = shutil.which(name)
    if path is None:
        return None
    try:
        said = subprocess.run(
            [path, _VERSION_ARGUMENT[name]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise VitisError(f"{path} did not say its version within {_PROBE_SECONDS} seconds") from error
    except OSError as error:
        raise VitisError(f"{path} cannot be run: {error.strerror}") from error
    version = Version.of_banner(said.stdout + said.stderr)
    if version is None:
        last = (said.stdout + said.stderr).strip().splitlines()[-1:]
        raise VitisError(
            f"{path} does not say its version (exit code {said.returncode}{': ' + last[0] if last else ''}).\n"
            f"  Is its environment set? source <where Vitis is>/Vitis/<version>/settings64.sh"
        )
    if not OLDEST <= version <= NEWEST:
        raise VitisError(f"{path} is version {version}; the scripts here are for Vitis {OLDEST} to {NEWEST}")
    return Tool(name, Path(path), version)


def hls() -> Tool:
    """The front end of HLS: vitis-run from 2023.1 on, vitis_hls before, or where only Vitis HLS is installed."""
    runner = probe("vitis-run")
    if runner is not None and runner.version >= VITIS_RUN:
        return runner
    classic = probe("vitis_hls")
    if classic is None:
        raise MissingTool(f"vitis_hls (Vitis {OLDEST} to 2022.2) or vitis-run ({VITIS_RUN} to {NEWEST})")
    return classic


def linker() -> Tool:
    """v++, which links kernels to a platform."""
    found = probe("v++")
    if found is None:
        raise MissingTool("v++")
    return found


def emconfigutil() -> Path:
    """emconfigutil, which describes the emulated card; it comes with v++ and has its version."""
    path = shutil.which("emconfigutil")
    if path is None:
        raise MissingTool("emconfigutil")
    return Path(path)
