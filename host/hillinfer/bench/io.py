"""How fast rows are read and written: by row size, queue depth and engine; gaps merged or not; rows or planes.

Everything goes through what decoding uses (`RowReader`, `WriteBehind`), checksums included, on a file of the cold
folder. With O_DIRECT no figure is the page cache's; where the folder has none the result says so.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hillinfer import _native
from hillinfer.csd.cold.files import ColdFile, aligned_buffer, check_room, prepare_folder
from hillinfer.csd.cold.write_behind import WriteBehind

ENGINES = ("io_uring", "pool")
ROW_BYTES = (768, 1536, 4096, 16384, 65536)
DEPTHS = (1, 8, 32, 64, 128, 256, 512)
GAPS = (0, 4096, 8192, 16384, 32768, 65536)
GAP = 16384  # over which the cold pool reads
GAP_ROWS = (1536, 4096, 16384)
PLANE_ROWS = (1536, 4096, 16384, 65536)
DEPTH = 512  # of all that does not ask for depths: what the cold pool reads with
_ARENA, _REQUEST = 8 << 20, 1 << 17  # as the cold pool has them
_WRITE = 4 << 20
_BATCH = 512  # rows of a read

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Figure:
    """One measurement.

    kind        random, sequential, write, gaps or layout
    row_bytes   of a row; depth: requests in flight; gap_bytes: read over gaps this small; layout: rows or planes
    per_s       rows; requests_per_s; mib_s: of rows, in MiB
    request     KiB read per request
    cpu_us      processor time per row, the kernel's part in this process included
    """

    kind: str
    engine: str
    row_bytes: int
    depth: int
    gap_bytes: int
    layout: str
    per_s: float
    requests_per_s: float
    mib_s: float
    request_kib: float
    cpu_us: float


@dataclass(frozen=True)
class _Way:
    """A way to read rows: how, and which, read after read."""

    kind: str
    engine: str
    row_bytes: int
    reads: Sequence[Positions]
    depth: int = DEPTH
    gap_bytes: int = 0
    layout: str = ""


class _Course:
    """One way under way: its reader, memory for its rows, and how long each read took."""

    def __init__(self, way: _Way, file: ColdFile, size: int, sums: npt.NDArray[np.uint32]) -> None:
        self._way, self._sums = way, sums
        planes = way.layout == "planes"
        width = way.row_bytes // 2 if planes else way.row_bytes
        period = int(np.lcm(_WRITE, width))  # content and checksums repeat
        self._bases = (0, size // 2 // period * period) if planes else (0,)
        self._reader = _native.RowReader(way.engine, way.depth, _ARENA, _REQUEST, way.gap_bytes)
        self._file = _native.RowFile(self._reader, file.fd, width, file.alignment if file.direct else 1)
        longest = max(map(len, way.reads))
        self._outs = [np.zeros((longest, width), np.uint8) for _ in self._bases]
        self._turn, self._rows, self._requests, self._nbytes = 0, 0, 0, 0
        self._cpu, self._took = 0.0, array("d")
        self._once()  # memory is there, and the kernel knows buffers and file

    def _once(self) -> list[_native.RowRead]:
        positions = self._way.reads[self._turn % len(self._way.reads)]
        flying = [
            self._file.start(base, positions, self._sums, out[: len(positions)])
            for base, out in zip(self._bases, self._outs, strict=True)
        ]
        if not all(each.finish() for each in flying):
            raise AssertionError("a row of the benchmark's own file is not what was written")
        return flying

    def step(self) -> None:
        """One read of the way's, measured."""
        started, cpu = time.perf_counter(), time.process_time()
        flying = self._once()
        took = time.perf_counter() - started
        self._cpu += time.process_time() - cpu
        rows = len(self._way.reads[self._turn % len(self._way.reads)])
        self._took.append(took / rows)
        self._turn += 1
        self._rows += rows
        self._requests += sum(each.requests for each in flying)
        self._nbytes += sum(each.nbytes for each in flying)

    def figure(self) -> Figure:
        """The way's figure: the median read."""
        way, per_s = self._way, 1 / statistics.median(self._took)
        return Figure(
            way.kind,
            way.engine,
            way.row_bytes,
            way.depth,
            way.gap_bytes,
            way.layout,
            per_s,
            per_s * self._requests / self._rows,
            per_s * way.row_bytes / 2**20,
            self._nbytes / self._requests / 1024,
            self._cpu / self._rows * 1e6,
        )

    def close(self) -> None:
        self._reader.close()


class Bench:
    """Measurements on one file of ``size`` bytes, ``seconds`` for each; ``say`` is told what is measured.

    What is to be compared takes turns, read by read, and medians are told: another program that comes and goes slows
    all of it alike.
    """

    def __init__(self, folder: Path, *, create: bool, size: int, seconds: float, say: Callable[[str], None]) -> None:
        self._size, self._seconds, self._say = max(size // _WRITE, 2) * _WRITE, seconds, say
        prepare_folder(folder, create=create)
        check_room(folder, self._size)
        self.folder = folder
        self.file = ColdFile(folder, direct=True)
        self.direct = self.file.direct
        self.engines = [engine for engine in ENGINES if engine == "pool" or has_uring()]
        self._rng = np.random.default_rng(0)
        self._piece = aligned_buffer(_WRITE)
        self._piece[:] = self._rng.integers(0, 256, _WRITE, np.uint8)

    def close(self) -> None:
        """Give the file back."""
        self.file.close()

    def run(self) -> Iterator[Figure]:
        """All measurements; the file is written first."""
        yield self.write()
        for row_bytes in (4096, 65536):
            yield from self.sequential(row_bytes)
        for row_bytes in ROW_BYTES:
            yield from self.random(row_bytes)
        for row_bytes in GAP_ROWS:
            yield from self.gaps(row_bytes)
        for row_bytes in PLANE_ROWS:
            yield from self.layout(row_bytes)

    def write(self) -> Figure:
        """Bandwidth of writing behind, the whole file once; every piece of it has the same content."""
        self._say(f"writing {self._size >> 20} MiB")
        with contextlib.closing(WriteBehind()) as writer:
            started, cpu = time.perf_counter(), time.process_time()
            for offset in range(0, self._size, _WRITE):
                writer.write(self.file, self._piece, offset)
            writer.drain()
            took, cpu = time.perf_counter() - started, time.process_time() - cpu
        pieces = self._size // _WRITE
        mib_s, cpu_us = self._size / took / 2**20, cpu / pieces * 1e6
        return Figure("write", "threads", _WRITE, 4, 0, "", pieces / took, pieces / took, mib_s, _WRITE / 1024, cpu_us)

    def sequential(self, row_bytes: int) -> list[Figure]:
        """The file from its beginning, 4 MiB of rows at a time, as a prompt reads what is before it."""
        rows = _WRITE // row_bytes
        starts = range(0, self._size // row_bytes - rows, rows)
        reads = [np.arange(first, first + rows) for first in starts]
        return self._compare([_Way("sequential", engine, row_bytes, reads) for engine in self.engines])

    def random(self, row_bytes: int, depths: Sequence[int] = DEPTHS) -> list[Figure]:
        """Single rows at random places, none beside another."""
        ways = []
        for depth in depths:
            reads = self._scattered(row_bytes, min(_BATCH, 8 * depth))
            ways += [_Way("random", engine, row_bytes, reads, depth) for engine in self.engines]
        return self._compare(ways)

    def gaps(self, row_bytes: int) -> list[Figure]:
        """Clusters of rows, as selections have them: 3 rows on average, 2 tokens apart on average (geometric both)."""
        reads = []
        for starts in self._scattered(row_bytes, _BATCH // 3, clear=32):
            sizes = self._rng.geometric(1 / 3, len(starts))
            steps = self._rng.geometric(1 / 2, int(sizes.sum()))
            ends = np.cumsum(sizes)
            steps[ends - sizes] = 0  # the first of each cluster
            walked = np.cumsum(steps)
            within = walked - np.repeat(walked[ends - sizes], sizes)
            places = np.repeat(starts, sizes) + within
            reads.append(np.unique(places[places < self._size // row_bytes]))
        return self._compare([_Way("gaps", self.engines[0], row_bytes, reads, gap_bytes=gap) for gap in GAPS])

    def layout(self, row_bytes: int) -> list[Figure]:
        """Tokens at random places: key and value one row, or half a row in each of two planes."""
        reads = self._scattered(row_bytes, _BATCH)
        return self._compare(
            [_Way("layout", self.engines[0], row_bytes, reads, layout=layout) for layout in ("rows", "planes")]
        )

    def _scattered(self, row_bytes: int, count: int, clear: int = 2) -> list[Positions]:
        """Some reads of ``count`` rows at random, ``clear`` rows apart at least."""
        places = self._size // row_bytes // clear
        count = min(count, places)
        drawn = (self._rng.choice(places, count, replace=False) for _ in range(8))
        return [np.sort(each).astype(np.int64) * clear for each in drawn]

    def _compare(self, ways: Sequence[_Way]) -> list[Figure]:
        """The figures of ways that take turns."""
        self._say(f"{ways[0].kind} reads of rows of {ways[0].row_bytes} bytes, {len(ways)} ways")
        with contextlib.ExitStack() as stack:
            courses = []
            for way in ways:
                width = way.row_bytes // 2 if way.layout == "planes" else way.row_bytes
                course = _Course(way, self.file, self._size, self._checksums(width))
                courses.append(stack.enter_context(contextlib.closing(course)))
            until = time.perf_counter() + self._seconds * len(ways)
            while True:
                for course in courses:
                    course.step()
                if time.perf_counter() >= until:
                    return [course.figure() for course in courses]

    def _checksums(self, row_bytes: int) -> npt.NDArray[np.uint32]:
        """Of every row of the file, which repeats one piece."""
        rows = self._size // row_bytes
        content = np.tile(self._piece, int(np.lcm(_WRITE, row_bytes)) // _WRITE).reshape(-1, row_bytes)
        return np.resize(_native.checksums(content), rows)


def has_uring() -> bool:
    """Whether the kernel gives io_uring."""
    with contextlib.closing(_native.RowReader()) as reader:
        return reader.engine == "io_uring"


def as_dict(figures: Sequence[Figure], settings: dict[str, Any]) -> dict[str, Any]:
    """What goes into the JSON file: settings, figures, and a flat summary of this run's ratios."""
    return {
        **settings,
        "figures": [asdict(each) for each in figures],
        "summary": summary(figures),
    }


def summary(figures: Sequence[Figure]) -> dict[str, float]:
    """Ratios, so far as their figures are there: engine over engine, merged over not, rows over planes."""

    def rate(**wanted: Any) -> float | None:
        found = [each for each in figures if all(getattr(each, key) == value for key, value in wanted.items())]
        return found[0].per_s if found else None

    pairs: dict[str, tuple[float | None, float | None]] = {}
    for row_bytes in ROW_BYTES:
        of = {"kind": "random", "row_bytes": row_bytes, "depth": DEPTH}
        pairs[f"io_uring_over_pool_{row_bytes}"] = rate(engine="io_uring", **of), rate(engine="pool", **of)
    for row_bytes in GAP_ROWS:
        gaps = {"kind": "gaps", "row_bytes": row_bytes}
        pairs[f"gaps_merged_over_not_{row_bytes}"] = rate(gap_bytes=GAP, **gaps), rate(gap_bytes=0, **gaps)
    for row_bytes in PLANE_ROWS:
        both = {"kind": "layout", "row_bytes": row_bytes}
        pairs[f"rows_over_planes_{row_bytes}"] = rate(layout="rows", **both), rate(layout="planes", **both)
    return {name: over / under for name, (over, under) in pairs.items() if over and under}
