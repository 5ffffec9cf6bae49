"""How fast rows are read and written: by row size, queue depth and engine; gaps merged or not; rows or planes.

Everything goes through what decoding uses (`RowReader`, `WriteBehind`), checksums included, on a file of the cold
folder. With O_DIRECT no figure is the page cache's; where the folder has none the result says so.
"""

from __future__ import annotations

import contextlib
import time
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
DEPTHS = (1, 8, 32, 64, 128, 256)
GAPS = (0, 4096, 16384, 32768, 65536)
PLANE_ROWS = (1536, 4096, 16384, 65536)
DEPTH = 256  # of all that does not ask for depths: what the cold pool reads with
_REQUEST = 1 << 17
_WRITE = 4 << 20
_BATCH = 512  # rows of a read, at least

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
class Cost:
    """A request takes ``request_us`` and ``kib_us`` more per KiB, at the depth in use: least squares over row sizes.

    gap_bytes   that are read in the time of one request: what it pays to read over
    """

    engine: str
    request_us: float
    kib_us: float

    @property
    def gap_bytes(self) -> float:
        return max(0.0, self.request_us / self.kib_us * 1024) if self.kib_us > 0 else float("inf")


class Bench:
    """Measurements on one file of ``size`` bytes, ``seconds`` for each; ``say`` is told of each before it is made."""

    def __init__(self, folder: Path, *, create: bool, size: int, seconds: float, say: Callable[[str], None]) -> None:
        self._size, self._seconds, self._say = max(size // _WRITE, 2) * _WRITE, seconds, say
        prepare_folder(folder, create=create)
        check_room(folder, self._size)
        self.folder = folder
        self.file = ColdFile(folder, direct=True)
        self.direct = self.file.direct
        self.engines = [engine for engine in ENGINES if engine == "pool" or self.has_uring()]
        self._rng = np.random.default_rng(0)
        self._piece = aligned_buffer(_WRITE)
        self._piece[:] = self._rng.integers(0, 256, _WRITE, np.uint8)

    def has_uring(self) -> bool:
        """Whether the kernel gives io_uring."""
        with contextlib.closing(_native.RowReader()) as reader:
            return reader.engine == "io_uring"

    def close(self) -> None:
        """Give the file back."""
        self.file.close()

    def run(self) -> Iterator[Figure]:
        """All measurements; the file is written first."""
        yield self.write()
        for row_bytes in (4096, 65536):
            for engine in self.engines:
                yield self.sequential(engine, row_bytes)
        for row_bytes in ROW_BYTES:
            for depth in DEPTHS:
                for engine in self.engines:
                    yield self.random(engine, row_bytes, depth)
        for row_bytes in (1536, 4096, 16384):
            for gap in GAPS:
                yield self.gaps(self.engines[0], row_bytes, gap)
        for row_bytes in PLANE_ROWS:
            for layout in ("rows", "planes"):
                yield self.layout(self.engines[0], row_bytes, layout)

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
        mib_s = self._size / took / 2**20
        return Figure(
            "write", "threads", _WRITE, 4, 0, "", pieces / took, pieces / took, mib_s, _WRITE / 1024, cpu / pieces * 1e6
        )

    def sequential(self, engine: str, row_bytes: int) -> Figure:
        """The file from its beginning, 4 MiB of rows at a time, as a prompt reads what is before it."""
        rows = _WRITE // row_bytes
        starts = range(0, self._size // row_bytes - rows, rows)
        reads = [np.arange(first, first + rows) for first in starts]
        return self._measure("sequential", engine, row_bytes, DEPTH, 0, reads)

    def random(self, engine: str, row_bytes: int, depth: int) -> Figure:
        """Single rows at random places, none beside another."""
        return self._measure("random", engine, row_bytes, depth, 0, self._scattered(row_bytes, max(_BATCH, 8 * depth)))

    def gaps(self, engine: str, row_bytes: int, gap_bytes: int) -> Figure:
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
        return self._measure("gaps", engine, row_bytes, DEPTH, gap_bytes, reads)

    def layout(self, engine: str, row_bytes: int, layout: str) -> Figure:
        """Tokens at random places: key and value one row, or half a row in each of two planes."""
        reads = self._scattered(row_bytes, _BATCH)
        return self._measure("layout", engine, row_bytes, DEPTH, 0, reads, planes=layout == "planes")

    def _scattered(self, row_bytes: int, count: int, clear: int = 2) -> list[Positions]:
        """Some reads of ``count`` rows at random, ``clear`` rows apart at least."""
        places = self._size // row_bytes // clear
        count = min(count, places)
        drawn = (self._rng.choice(places, count, replace=False) for _ in range(8))
        return [np.sort(each).astype(np.int64) * clear for each in drawn]

    def _measure(
        self,
        kind: str,
        engine: str,
        row_bytes: int,
        depth: int,
        gap_bytes: int,
        reads: Sequence[Positions],
        *,
        planes: bool = False,
    ) -> Figure:
        layout = ("planes" if planes else "rows") if kind == "layout" else ""
        gap = f", gaps of {gap_bytes} bytes" if kind == "gaps" else ""
        self._say(f"{kind} reads: {engine}, {row_bytes} bytes{gap}{' in ' + layout if layout else ''}, depth {depth}")
        width = row_bytes // 2 if planes else row_bytes
        sums = self._checksums(width)
        period = int(np.lcm(_WRITE, width))  # content and checksums repeat
        bases = (0, self._size // 2 // period * period) if planes else (0,)
        rows = requests = nbytes = 0
        with contextlib.closing(_native.RowReader(engine, depth, depth * _REQUEST, _REQUEST, gap_bytes)) as reader:
            file = _native.RowFile(reader, self.file.fd, width, self.file.alignment if self.direct else 1)
            outs = [np.empty((max(map(len, reads)), width), np.uint8) for _ in bases]
            file.start(0, reads[-1], sums, outs[0][: len(reads[-1])]).finish()  # memory is there, files are known
            started, cpu, turn = time.perf_counter(), time.process_time(), 0
            while time.perf_counter() - started < self._seconds:
                positions = reads[turn % len(reads)]
                flying = [
                    file.start(base, positions, sums, out[: len(positions)])
                    for base, out in zip(bases, outs, strict=True)
                ]
                if not all(each.finish() for each in flying):
                    raise AssertionError("a row of the benchmark's own file is not what was written")
                rows += len(positions)
                requests += sum(each.requests for each in flying)
                nbytes += sum(each.nbytes for each in flying)
                turn += 1
            took, cpu = time.perf_counter() - started, time.process_time() - cpu
        return Figure(
            kind,
            engine,
            row_bytes,
            depth,
            gap_bytes,
            layout,
            rows / took,
            requests / took,
            rows * row_bytes / took / 2**20,
            nbytes / requests / 1024,
            cpu / rows * 1e6,
        )

    def _checksums(self, row_bytes: int) -> npt.NDArray[np.uint32]:
        """Of every row of the file, which repeats one piece."""
        rows = self._size // row_bytes
        content = np.tile(self._piece, int(np.lcm(_WRITE, row_bytes)) // _WRITE).reshape(-1, row_bytes)
        return np.resize(_native.checksums(content), rows)


def costs(figures: Sequence[Figure]) -> list[Cost]:
    """A line through the random reads of each engine, rows as large as what is read for them."""
    lines = []
    for engine in ENGINES:
        mine = [each for each in figures if (each.kind, each.engine, each.depth) == ("random", engine, DEPTH)]
        if len(mine) > 1:
            slope, start = np.polyfit(
                [each.request_kib for each in mine], [1e6 / each.requests_per_s for each in mine], 1
            )
            lines.append(Cost(engine, float(start), float(slope)))
    return lines


def as_dict(figures: Sequence[Figure], settings: dict[str, Any]) -> dict[str, Any]:
    """What goes into the JSON file: settings, figures, costs, and a flat summary of this run's ratios."""
    lines = costs(figures)
    return {
        **settings,
        "figures": [asdict(each) for each in figures],
        "costs": [{**asdict(each), "gap_bytes": each.gap_bytes} for each in lines],
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
    for row_bytes in (1536, 4096, 16384):
        gaps = {"kind": "gaps", "row_bytes": row_bytes}
        pairs[f"gaps_merged_over_not_{row_bytes}"] = rate(gap_bytes=32768, **gaps), rate(gap_bytes=0, **gaps)
    for row_bytes in PLANE_ROWS:
        both = {"kind": "layout", "row_bytes": row_bytes}
        pairs[f"rows_over_planes_{row_bytes}"] = rate(layout="rows", **both), rate(layout="planes", **both)
    return {name: over / under for name, (over, under) in pairs.items() if over and under}
