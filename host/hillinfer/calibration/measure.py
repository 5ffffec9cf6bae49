"""The four speeds of a step on this machine, each through the code that a step runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch

from hillinfer.calibration.figure import Done, Figure, repeat, timed
from hillinfer.calibration.fingerprint import usable_cores
from hillinfer.calibration.rates import Rates
from hillinfer.config import StoreSettings
from hillinfer.csd.contract import Device, Run, Stream
from hillinfer.csd.registry import open_device
from hillinfer.kv.geometry import BLOCK, TILE, Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.kv.query import QuantisedQuery, quantise_query
from hillinfer.kv.row_attention import attend_rows
from hillinfer.kv.scoring import pack

STEPS = ("f_c", "f_s", "B_c", "B_s")
"""What is measured, in this order, by the names of algorithms.md."""

SPREAD_LIMIT = 0.3
"""The middle half of a figure's repeats may span this share of their median."""
LOAD_LIMIT = 0.7
"""Runnable processes per core, the last minute's mean, above which a machine counts as busy."""

_TOKENS = 8192  # of a stream: what a step scores in one go
_ROWS_BYTES = 128 << 20  # of all streams together: more than a processor's cache, in the cold pool for a moment only
_SLOW_BLOCK = 0.02  # seconds for 1024 tokens: a simulated device scores no more than that at a time


@dataclass(frozen=True)
class Measured:
    """The figures by name, and runnable processes per core when measuring began (None: the system does not tell)."""

    figures: dict[str, Figure]
    load: float | None

    @property
    def rates(self) -> Rates:
        """The medians."""
        f_c, f_s, b_c, b_s = (self.figures[name].median for name in STEPS)
        return Rates(f_c, f_s, b_c, b_s)

    def busy(self) -> list[str]:
        """Why these figures are not to be trusted; nothing if they are."""
        reasons = [
            f"{name} spreads by {figure.spread:.0%}"
            for name, figure in self.figures.items()
            if figure.spread > SPREAD_LIMIT
        ]
        if self.load is not None and self.load > LOAD_LIMIT:
            reasons.append(f"{self.load:.1f} processes per core were running")
        return reasons


def measure(
    settings: StoreSettings,
    geometry: Geometry,
    compute: torch.device,
    *,
    alpha: float = 0.1,
    seconds: float = 2.5,
    tokens: int = _TOKENS,
    on_step: Callable[[str], None] = lambda _: None,
) -> Measured:
    """Measure for about ``seconds`` each; opens the device of ``settings``, and closes it.

    geometry   of the rows; its number of layers does not matter
    alpha      share of the tokens of which rows are read and attended at a time
    on_step    told which figure is measured now

    Raises what a device raises that cannot run, and ColdPoolError for a folder of no use.
    """
    load = os.getloadavg()[0] / usable_cores() if hasattr(os, "getloadavg") else None
    tokens = max(TILE, tokens // TILE * TILE)
    streams = min(16, max(2, _ROWS_BYTES // (tokens * geometry.row_bytes)))
    geometry = replace(geometry, layers=streams)
    with _filled(settings, geometry, tokens) as (device, rows, keys):
        query = _query(geometry)
        size = _device_tokens(device, query, tokens)
        count = max(1, int(alpha * tokens))
        scores = _scores(device, geometry, keys, query, size, streams)
        works: list[tuple[tuple[str, ...], Callable[[int], list[Done]]]] = [
            (("f_c", "f_s"), scores),
            (("B_c",), timed(_attends(geometry, rows, compute, count, streams))),
            (("B_s",), timed(_reads(device, geometry, tokens, count, streams))),
        ]
        figures: dict[str, Figure] = {}
        for names, work in works:
            on_step(names[0])
            figures.update(zip(names, repeat(work, seconds * len(names)), strict=True))
    return Measured(figures, load)


@contextmanager
def _filled(
    settings: StoreSettings, geometry: Geometry, tokens: int
) -> Iterator[tuple[Device, torch.Tensor, ScoringKeys]]:
    """The device with ``tokens`` tokens in a stream per layer, all alike: their rows and their scoring keys."""
    generator = torch.Generator().manual_seed(0)
    shape = (geometry.kv_heads, tokens, geometry.head_dim)
    keys, values = (torch.randn(shape, generator=generator).to(geometry.dtype) for _ in range(2))
    rows = geometry.pack_rows(keys, values)
    integers = np.random.default_rng(0).integers(-127, 128, (tokens, *shape[::2]), np.int8)
    cast = ScoringKeys(integers, np.full((tokens // TILE, geometry.kv_heads), 5, np.int8))
    device = open_device(settings, geometry, tokens, lambda *_: None)
    try:
        for layer in range(geometry.layers):
            device.append(Stream(layer, 0), 0, rows.view(torch.uint8).numpy(), cast)
        device.flush()
        yield device, rows, cast
    finally:
        device.close()


def _query(geometry: Geometry) -> QuantisedQuery:
    shape = (geometry.kv_heads, geometry.group, geometry.head_dim)
    query = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    normaliser = np.zeros(shape[:2], np.float32)
    return quantise_query(query, geometry.head_dim**-0.5, normaliser, np.full(shape[0], 5, np.int8), "max")


def _device_tokens(device: Device, query: QuantisedQuery, tokens: int) -> int:
    """As many tokens as a device scores in a moment: all, or a block of a simulated one."""
    block = min(BLOCK, tokens)
    scores = np.empty(block, np.int16)
    start = time.perf_counter()
    for _ in range(2):
        start = time.perf_counter()
        device.submit(Stream(0, 0), query, [Run(0, block)]).merge_into(scores)
    return block if time.perf_counter() - start > _SLOW_BLOCK else tokens


def _scores(
    device: Device, geometry: Geometry, keys: ScoringKeys, query: QuantisedQuery, theirs: int, streams: int
) -> Callable[[int], list[Done]]:
    """Host and device score at the same time, as they do in a step: they share a memory, and perhaps a processor.

    theirs   tokens the device scores at a time; the host scores all
    """
    tiles = [pack(keys.integers) for _ in range(streams)]  # copies, as many as a step has layers to go through
    ours, scores = np.empty(len(keys.integers), np.int16), np.empty(theirs, np.int16)
    counters = device.counters

    def work(i: int) -> list[Done]:
        before, asked = counters.seconds, time.perf_counter()
        ticket = device.submit(Stream(i % streams, 0), query, [Run(0, theirs)])
        start = time.perf_counter()
        query.native.score(tiles[i % streams], keys.exponents, ours)
        host = time.perf_counter() - start
        ticket.merge_into(scores)
        scanned = counters.seconds - before or time.perf_counter() - asked
        return [(len(ours) * geometry.row_bytes, host), (theirs * geometry.row_bytes, scanned)]

    return work


def _attends(
    geometry: Geometry, rows: torch.Tensor, compute: torch.device, count: int, streams: int
) -> Callable[[int], int]:
    """Rows at random places of a pool: attended in place on a CPU, copied to where they are attended otherwise."""
    pool = rows.repeat(streams, 1)
    query = torch.randn(geometry.kv_heads, geometry.group, 1, geometry.head_dim).to(compute, geometry.dtype)
    rng, ranks = np.random.default_rng(2), np.arange(count)

    def work(_: int) -> int:
        index = np.sort(rng.choice(len(pool), count, replace=False))
        attention = attend_rows(geometry, query, geometry.head_dim**-0.5, count)
        attention.add(pool, index, ranks)
        attention.finish()
        return count * geometry.row_bytes

    return work


def _reads(device: Device, geometry: Geometry, tokens: int, count: int, streams: int) -> Callable[[int], int]:
    out = torch.empty(count, geometry.row_stride, dtype=geometry.dtype).view(torch.uint8).numpy()
    rng = np.random.default_rng(3)

    def work(i: int) -> int:
        positions = np.sort(rng.choice(tokens, count, replace=False))
        device.read(Stream(i % streams, 0), positions, out).wait()
        return out.size

    return work
