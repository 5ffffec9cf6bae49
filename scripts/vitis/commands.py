"""The command lines of AMD's tools, as lists of arguments. Nothing is run here.

Source: UG1399 (Tcl of HLS), UG1393 and UG1702 (v++, emconfigutil). Scripts of HLS get their settings through the
environment, since ``vitis-run --tcl`` passes no arguments on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import VitisError
from .tools import Tool

TARGETS = ("hw", "hw_emu")
STEPS = ("csim", "csynth", "cosim", "export")
TCL = Path("hls/vitis/hls.tcl")
KERNEL = "qk_score"


def check_target(target: str) -> None:
    """VitisError for a build target that is not offered."""
    if target == "sw_emu":
        raise VitisError(
            "TARGET=sw_emu is not offered: AMD is dropping it. make csim runs the kernel's C++, make cosim its RTL, "
            "TARGET=hw_emu the linked system"
        )
    if target not in TARGETS:
        raise VitisError(f"TARGET={target} is not a build target: hw (the card) or hw_emu (emulation)")


def check_clock(mhz: int) -> None:
    """VitisError for a kernel clock that no SmartSSD can have."""
    if not 50 <= mhz <= 500:
        raise VitisError(f"CLOCK_MHZ={mhz} is not a kernel clock: 50 to 500 MHz, 300 is the platform's own")


def hls(tool: Tool, script: Path) -> list[str]:
    """Run a Tcl script of HLS with whichever front end there is."""
    if tool.name == "vitis-run":
        return [str(tool.path), "--mode", "hls", "--tcl", str(script)]
    return [str(tool.path), "-f", str(script)]


@dataclass(frozen=True)
class HlsSettings:
    """What hls.tcl is told."""

    steps: Sequence[str]
    work: Path
    part: str
    clock_mhz: int
    stimuli: Path | None = None
    xo: Path | None = None

    def environment(self) -> dict[str, str]:
        """The settings as hls.tcl reads them. VitisError for steps that are unknown or lack their file."""
        unknown = [step for step in self.steps if step not in STEPS]
        if unknown or not self.steps:
            raise VitisError(f"steps of HLS are {', '.join(STEPS)}, not {', '.join(unknown) or 'none'}")
        if {"csim", "cosim"} & set(self.steps) and self.stimuli is None:
            raise VitisError("csim and cosim need a stimulus file: python -m scripts.vitis stimuli --output FILE")
        if {"cosim", "export"} & set(self.steps) and "csynth" not in self.steps:
            raise VitisError("cosim and export need csynth in the same run")
        if "export" in self.steps and self.xo is None:
            raise VitisError("export needs the name of the .xo file")
        check_clock(self.clock_mhz)
        settings = {
            "QK_STEPS": " ".join(step for step in STEPS if step in self.steps),
            "QK_WORK": str(self.work.resolve()),
            "QK_PART": self.part,
            "QK_PERIOD_NS": f"{1000 / self.clock_mhz:.3f}",
        }
        if self.stimuli is not None:
            settings["QK_STIMULI"] = str(self.stimuli.resolve())
        if self.xo is not None:
            settings["QK_XO"] = str(self.xo.resolve())
        return settings


def link(
    tool: Tool, target: str, platform: Path, connectivity: Path, clock_mhz: int, xo: Path, xclbin: Path
) -> list[str]:
    """Link the kernel to the platform: hours for hw, minutes for hw_emu. Paths are made absolute."""
    check_target(target)
    check_clock(clock_mhz)
    xclbin = xclbin.resolve()
    folder = xclbin.parent
    return [
        str(tool.path),
        "--link",
        *("--target", target),
        *("--platform", str(platform)),
        *("--config", str(connectivity.resolve())),
        # The SmartSSD's clocks are scalable ones, for which UG1393 names this option and not --clock.
        *("--kernel_frequency", str(clock_mhz)),
        "--save-temps",
        *("--report_level", "2"),
        *("--temp_dir", str(folder / "temp")),
        *("--log_dir", str(folder / "logs")),
        *("--report_dir", str(folder / "reports")),
        *("--output", str(xclbin)),
        str(xo.resolve()),
    ]


def emconfig(emconfigutil: Path, platform: Path, folder: Path) -> list[str]:
    """Write emconfig.json, which the emulated runtime looks for beside the program."""
    return [str(emconfigutil), "--platform", str(platform), "--nd", "1", "--od", str(folder.resolve())]
