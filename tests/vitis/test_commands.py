"""The command lines, argument by argument, and what is refused before anything runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from scripts.vitis import commands
from scripts.vitis.commands import HlsSettings
from scripts.vitis.errors import VitisError
from scripts.vitis.tools import Tool
from scripts.vitis.version import Version

SETTINGS = HlsSettings(
    ("csynth", "export"), Path("/somewhere/hls"), "xcku15p-ffva1156-2LV-e", 300, xo=Path("/somewhere/q.xo")
)
VPP = Tool("v++", Path("/opt/v++"), Version(2022, 2))


def link(target: str = "hw", clock: int = 300) -> list[str]:
    paths = Path("/p.xpfm"), Path("/smartssd.cfg")
    return commands.link(VPP, target, *paths, clock, Path("/q.xo"), Path("/build/q.xclbin"))


def test_link() -> None:
    assert link() == [
        "/opt/v++", "--link", "--target", "hw", "--platform", "/p.xpfm", "--config", "/smartssd.cfg",
        "--kernel_frequency", "300", "--save-temps", "--report_level", "2", "--temp_dir", "/build/temp",
        "--log_dir", "/build/logs", "--report_dir", "/build/reports", "--output", "/build/q.xclbin", "/q.xo",
    ]  # fmt: skip


def test_paths_become_absolute_since_the_tool_is_started_elsewhere() -> None:
    argv = commands.link(VPP, "hw", Path("/p.xpfm"), Path("s.cfg"), 300, Path("q.xo"), Path("out/q.xclbin"))
    assert argv[argv.index("--config") + 1] == str(Path.cwd() / "s.cfg")
    assert argv[argv.index("--temp_dir") + 1] == str(Path.cwd() / "out/temp")
    assert argv[-1] == str(Path.cwd() / "q.xo")


def test_emconfig() -> None:
    argv = commands.emconfig(Path("emconfigutil"), Path("/p.xpfm"), Path("/out"))
    assert argv == ["emconfigutil", "--platform", "/p.xpfm", "--nd", "1", "--od", "/out"]


def test_hls_is_told_by_environment() -> None:
    assert SETTINGS.environment() == {
        "QK_STEPS": "csynth export",
        "QK_WORK": "/somewhere/hls",
        "QK_PART": "xcku15p-ffva1156-2LV-e",
        "QK_PERIOD_NS": "3.333",
        "QK_XO": "/somewhere/q.xo",
    }


def test_steps_run_in_their_order_whatever_order_they_are_asked_in() -> None:
    steps = ("export", "cosim", "csynth", "csim")
    asked = replace(SETTINGS, steps=steps, stimuli=Path("/s.bin")).environment()
    assert asked["QK_STEPS"] == "csim csynth cosim export"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"steps": ()}, "steps of HLS are csim, csynth, cosim, export, not none"),
        ({"steps": ("csynth", "synth")}, "not synth"),
        ({"steps": ("csim",)}, "need a stimulus file: python -m scripts.vitis stimuli"),
        ({"steps": ("export",)}, "need csynth in the same run"),
        ({"steps": ("cosim",), "stimuli": Path("s")}, "need csynth in the same run"),
        ({"xo": None}, "export needs the name"),
        ({"clock_mhz": 3000}, "CLOCK_MHZ=3000 is not a kernel clock"),
    ],
)
def test_impossible_hls_runs_are_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(VitisError, match=says):
        replace(SETTINGS, **wrong).environment()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "says"),
    [("sw_emu", "sw_emu is not offered: .*make csim"), ("hardware", "TARGET=hardware is not a build target: hw")],
)
def test_wrong_targets_are_refused(target: str, says: str) -> None:
    with pytest.raises(VitisError, match=says):
        link(target=target)


def test_wrong_clocks_are_refused() -> None:
    with pytest.raises(VitisError, match=r"CLOCK_MHZ=0 .*50 to 500"):
        link(clock=0)
