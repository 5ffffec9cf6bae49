"""One launch of the RTL under Verilator, without Python in the loop; figures count only if its results are right."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tb.qk_layout import Format
from tb.qk_score.cases import Launch, Stimulus
from tb.rtl import TOP, RegisterMap, Rtl, RtlError
from tb.verilate import build

LEAST_BEATS = 1 << 16  # 4 MiB of keys: what one launch is given on the card
LOOP = Path(__file__).with_name("loop.cpp")


@dataclass(frozen=True)
class Variant:
    """A way to use the kernel: keys of ``heads`` heads of ``d`` elements, ``group`` queries each.

    goal   cycles per key beat, at most
    """

    name: str
    format: Format
    heads: int
    group: int
    d: int
    goal: float

    def launch(self) -> Launch:
        """A launch of at least so many key beats."""
        row_beats = Stimulus(self.format, self.heads, self.group, self.d, 0).geometry().row_beats
        tokens = -(-LEAST_BEATS // row_beats)
        return Stimulus(self.format, self.heads, self.group, self.d, tokens).launch()


@dataclass(frozen=True)
class Run:
    """What one launch took: cycles from the write of ap_start to the interrupt.

    latency_cycles   from the last key beat to the last trailer beat
    """

    cycles: int
    latency_cycles: int
    cycles_per_s: float
    seconds: float


def variants() -> list[Variant]:
    """The four formats on rows of many beats, on rows of one beat, and where there is such a thing with two passes."""
    found = []
    for fmt in Format:
        name = fmt.name.lower()
        found.append(Variant(name, fmt, heads=8, group=4, d=128, goal=1.01))
        found.append(Variant(f"{name}_row1", fmt, heads=1, group=4, d=fmt.lanes, goal=1.03))
        if fmt.stored:
            found.append(Variant(f"{name}_dual", fmt, heads=8, group=8, d=128, goal=2.01))
    return found


def build_loop(rtl: Rtl, cache: Path) -> Path:
    """The program that runs launches; RtlError when it doesn't compile."""
    return build(rtl, cache, LOOP) / TOP


def run(program: Path, registers: RegisterMap, launch: Launch, folder: Path, memory_latency: int) -> Run:
    """Run one launch; RtlError when it does not end, or gives other Score Blocks than the NumPy model."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{name}.bin" for name in ("query", "keys", "exps", "blocks")}
    for name in ("query", "keys", "exps"):
        files[name].write_bytes(getattr(launch, name))
    writes = []
    for index, name in enumerate(files, start=1):
        writes += [f"{registers[name]}=0", f"{registers[name] + 4}={index}"]
    for name in ("n_tokens", "first_token", "shape", "format", "min_score", "tag"):
        writes.append(f"{registers[name]}={getattr(launch, name) & 0xFFFFFFFF}")
    command = [str(program), str(memory_latency), *map(str, files.values()), str(len(launch.expected)), *writes]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RtlError(f"{launch.name}: {done.stderr.strip()}")
    if files["blocks"].read_bytes() != launch.expected:
        raise RtlError(f"{launch.name}: the Score Blocks are not those of the model")
    return Run(**json.loads(done.stdout))
