"""csynth.xml, the report of C synthesis: the initiation interval of every named loop, and the estimates.

Source: UG1399, "Output of C Synthesis". Loops are listed by module, as children of SummaryOfLoopLatency with a Name;
a pipelined loop has a PipelineII. From 2022.1 on a loop may have a module of its own (``pack_Pipeline_pack_loop``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from .errors import VitisError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# Of code that differs for Vitis, Vitis's branch.
_BRANCH = re.compile(r"^#ifdef __VITIS_HLS__$(.*?)^#else$.*?^#endif$", re.DOTALL | re.MULTILINE)
# label: for (...) { #pragma HLS PIPELINE II=1: as the kernel writes every loop that must be pipelined.
_LOOP = re.compile(r"\b(\w+):\s*for\s*\([^{]*\{\s*#pragma\s+HLS\s+PIPELINE\b([^\n]*)", re.IGNORECASE)
_II = re.compile(r"\bII\s*=\s*(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Loop:
    """A loop as synthesis scheduled it; ii is None when it was not pipelined."""

    module: str
    name: str
    ii: int | None


@dataclass(frozen=True)
class Synthesis:
    """What the gate needs of one csynth.xml. Periods in nanoseconds; the resources are estimates."""

    version: str
    part: str
    target_ns: float
    uncertainty_ns: float
    estimated_ns: float
    loops: tuple[Loop, ...]
    resources: dict[str, int]


def read(file: Path) -> Synthesis:
    """Parse csynth.xml; VitisError names the file and what is not as documented."""
    try:
        root = ElementTree.parse(file).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise VitisError(f"{file} cannot be read: {error}") from error
    loops = [
        Loop(_text(module, "Name", file), loop.findtext("Name") or loop.tag, _number(loop.findtext("PipelineII")))
        for module in root.iterfind("ModuleInformation/Module")
        for loop in module.iterfind("PerformanceEstimates/SummaryOfLoopLatency//*[Name]")
    ]
    if not loops:
        raise VitisError(f"{file} lists no loops: is it csynth.xml, the report of the whole design?")
    settings, timing = "UserAssignments", "PerformanceEstimates/SummaryOfTimingAnalysis"
    resources = root.find("AreaEstimates/Resources")
    return Synthesis(
        version=_text(root, "ReportVersion/Version", file),
        part=_text(root, f"{settings}/Part", file),
        target_ns=_period(root, f"{settings}/TargetClockPeriod", file),
        uncertainty_ns=_period(root, f"{settings}/ClockUncertainty", file),
        estimated_ns=_period(root, f"{timing}/EstimatedClockPeriod", file),
        loops=tuple(loops),
        resources={entry.tag: _number(entry.text) or 0 for entry in resources} if resources is not None else {},
    )


def pipelined_loops(sources: Iterable[Path]) -> dict[str, int]:
    """The loops that the kernel's sources want pipelined: label -> II of its pragma, 1 where it names none."""
    wanted: dict[str, int] = {}
    for source in sources:
        code = _BRANCH.sub(r"\1", _COMMENT.sub("", source.read_text(encoding="utf-8")))
        for label, pragma in _LOOP.findall(code):
            interval = _II.search(pragma)
            wanted[label] = int(interval[1]) if interval else 1
    return wanted


def faults(synthesis: Synthesis, wanted: dict[str, int]) -> list[str]:
    """What is wrong with the intervals, a sentence for each loop; empty when every loop has the II it asked for."""
    found = {loop.name: loop for loop in synthesis.loops}
    wrong = []
    for label, interval in sorted(wanted.items()):
        loop = found.get(label)
        if loop is None:
            wrong.append(f"loop {label} is not in the report (merged, unrolled or renamed?)")
        elif loop.ii is None:
            wrong.append(f"loop {label} in {loop.module} is not pipelined")
        elif loop.ii > interval:
            wrong.append(f"loop {label} in {loop.module} has II = {loop.ii}, its pragma wants {interval}")
    if synthesis.estimated_ns > synthesis.target_ns:
        wrong.append(
            f"the estimated period is {synthesis.estimated_ns:.3f} ns, the clock's is {synthesis.target_ns:.3f}"
        )
    return wrong


def _text(element: ElementTree.Element, path: str, file: Path) -> str:
    found = element.findtext(path)
    if not found:
        raise VitisError(f"{file} has no {path}: its format is not that of Vitis HLS 2021.2 to 2024.2")
    return found.strip()


def _period(element: ElementTree.Element, path: str, file: Path) -> float:
    text = _text(element, path, file)
    try:
        return float(text)
    except ValueError as error:
        raise VitisError(f"{file}: {path} is {text}, not a number of nanoseconds") from error


def _number(text: str | None) -> int | None:
    return int(text) if text and text.strip().isdigit() else None
