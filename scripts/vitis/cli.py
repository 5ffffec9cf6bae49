"""The commands. Exit codes: 0 done, 1 a gate or a check failed, 2 something is missing or wrong."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from . import build, platforms, provenance, report, stimuli, tools
from .commands import STEPS, HlsSettings
from .errors import VitisError

ROOT = Path(__file__).resolve().parents[2]


def probe(arguments: argparse.Namespace) -> int:
    """Say which tools and platforms are there; exit code 2 when an image cannot be built."""
    found: dict[str, str] = {}
    absent: list[str] = []
    missing: list[str] = []
    for name, look in (("hls", tools.hls), ("link", tools.linker)):
        try:
            tool = look()
            found[name] = f"{tool} ({tool.path})"
        except tools.MissingTool as error:
            absent.append(error.what)
        except VitisError as error:
            missing.append(str(error))
    if absent:
        missing.insert(0, str(tools.MissingTool(" and ".join(absent))))
    try:
        found["platform"] = str(platforms.find(arguments.platform))
    except VitisError as error:
        missing.append(str(error))
    if arguments.json:
        print(json.dumps({"found": found, "missing": missing}, indent=2))
    else:
        print("\n".join([f"{name}: {what}" for name, what in found.items()] + missing))
    return 2 if missing else 0


def hls(arguments: argparse.Namespace) -> int:
    """Run steps of HLS on the kernel."""
    steps = tuple(arguments.steps.replace(",", " ").split())
    build.hls(
        ROOT,
        HlsSettings(steps, arguments.work, arguments.part, arguments.clock, arguments.stimuli, arguments.xo),
    )
    return 0


def link(arguments: argparse.Namespace) -> int:
    """Link the kernel to a platform."""
    build.link(
        arguments.target,
        arguments.platform,
        arguments.connectivity,
        arguments.clock,
        arguments.xo,
        arguments.output,
    )
    return 0


def emconfig(arguments: argparse.Namespace) -> int:
    """Describe the emulated card."""
    build.emconfig(arguments.platform, arguments.output)
    return 0


def install(arguments: argparse.Namespace) -> int:
    """Put a linked image and its provenance among the bitstreams. A failed gate is told, and does not stop it."""
    record = provenance.read(arguments.image, "target", "clock_mhz")
    target, wanted = record["target"], record["clock_mhz"]["wanted"]
    gates = report.of_build(ROOT, arguments.hls, arguments.image.parent, target, wanted, arguments.kernel_clock)
    reports = {gate.name: {**gate.values, "faults": list(gate.faults)} for gate in gates}
    image = build.install(arguments.image, arguments.output, {"reports": reports})
    print("\n".join([*report.lines(gates), f"{image}\n{provenance.record_path(image)}"]))
    return 0


def show_report(arguments: argparse.Namespace) -> int:
    """Gate the tools' reports; exit code 1 when one fails."""
    gates = report.of_build(
        ROOT, arguments.hls, arguments.link, arguments.target, arguments.clock, arguments.kernel_clock
    )
    as_json = json.dumps({gate.name: asdict(gate) for gate in gates}, indent=2)
    if arguments.output is not None:
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(as_json + "\n", encoding="utf-8")
    print(as_json if arguments.json else "\n".join(report.lines(gates)))
    return 1 if any(gate.faults for gate in gates) else 0


def verify(arguments: argparse.Namespace) -> int:
    """Check an image against its provenance; exit code 1 when it differs or its sources have changed."""
    record = provenance.read(arguments.image, "git", "target", "platform", "tools", "built")
    wrong = provenance.verify(arguments.image, ROOT)
    if arguments.json:
        print(json.dumps({"record": record, "faults": wrong}, indent=2))
    else:
        git, changes = record["git"], " with local changes" if record["git"]["dirty"] else ""
        print(f"{arguments.image.name}: {record['target']} for {record['platform']}, {record['tools']['link']}")
        print(f"  of {git['revision']}{changes}, built {record['built']['xclbin']}")
        print("\n".join(f"  FAIL  {fault}" for fault in wrong) or "  ok    image and sources are those of the record")
    return 1 if wrong else 0


def make_stimuli(arguments: argparse.Namespace) -> int:
    """Write the stimulus file of Vitis's own simulations."""
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    print(f"{stimuli.write(arguments.output)} launches in {arguments.output}")
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python -m scripts.vitis", description="Build the scoring kernel with AMD's Vitis, and judge the result."
    )
    subs = top.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, function: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        what = (function.__doc__ or "").strip()
        sub = subs.add_parser(name, help=what, description=what)
        sub.set_defaults(function=function)
        return sub

    def platform_of(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--platform", default=platforms.SMARTSSD, help="name or .xpfm file (default: the SmartSSD's)")

    def clock_of(sub: argparse.ArgumentParser) -> None:
        sub.add_argument("--clock", type=int, default=300, metavar="MHZ", help="kernel clock (default: 300)")

    sub = command("probe", probe)
    platform_of(sub)
    sub.add_argument("--json", action="store_true", help="for programs")

    sub = command("hls", hls)
    sub.add_argument("--steps", required=True, help=f"any of {', '.join(STEPS)}")
    sub.add_argument("--work", type=Path, required=True, help="folder of the HLS project; made anew")
    sub.add_argument("--part", default=platforms.SMARTSSD_PART, help=f"FPGA (default: {platforms.SMARTSSD_PART})")
    clock_of(sub)
    sub.add_argument("--stimuli", type=Path, help="stimulus file, for csim and cosim")
    sub.add_argument("--xo", type=Path, help="compiled kernel to write, for export")

    sub = command("link", link)
    sub.add_argument("--target", default="hw", help="hw or hw_emu (default: hw)")
    platform_of(sub)
    sub.add_argument("--connectivity", type=Path, default=ROOT / "hls/vitis/smartssd.cfg", help="v++ configuration")
    clock_of(sub)
    sub.add_argument("--xo", type=Path, required=True, help="compiled kernel")
    sub.add_argument("--output", type=Path, required=True, help="image to write; reports go beside it")

    sub = command("emconfig", emconfig)
    platform_of(sub)
    sub.add_argument("--output", type=Path, required=True, help="folder for emconfig.json")

    sub = command("install", install)
    sub.add_argument("image", type=Path, help="linked image")
    sub.add_argument("--hls", type=Path, required=True, help="folder of the HLS project")
    sub.add_argument("--kernel-clock", help="name of the kernel's clock in the timing report")
    sub.add_argument("--output", type=Path, default=ROOT / "bitstreams", help="folder (default: bitstreams)")

    sub = command("report", show_report)
    sub.add_argument("--target", default="hw", help="hw or hw_emu (default: hw)")
    sub.add_argument("--hls", type=Path, required=True, help="folder of the HLS project")
    sub.add_argument("--link", type=Path, help="folder of the linked image")
    clock_of(sub)
    sub.add_argument("--kernel-clock", help="name of the kernel's clock in the timing report")
    sub.add_argument("--output", type=Path, help="JSON file to write as well")
    sub.add_argument("--json", action="store_true", help="for programs")

    sub = command("verify", verify)
    sub.add_argument("image", type=Path, help="image with its .json beside it")
    sub.add_argument("--json", action="store_true", help="for programs")

    sub = command("stimuli", make_stimuli)
    sub.add_argument("--output", type=Path, required=True, help="file to write")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code. Errors are a message, never a traceback."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.function(arguments))
    except VitisError as error:
        print(f"vitis: {error}", file=sys.stderr)
        return 2
    except OSError as error:  # a folder that cannot be written, a full disk
        print(f"vitis: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("vitis: stopped", file=sys.stderr)
        return 130
