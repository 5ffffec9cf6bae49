"""The drive of the cold pool, by the reader that a step uses."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from hillinfer.config import StoreSettings, default_cold_dir
from hillinfer.csd.contract import Stream
from hillinfer.csd.registry import open_device
from hillinfer.kv.geometry import Geometry
from hillinfer.simulation.measuring.probe import Probe

_TOKENS = 16384
_MANY = 128  # rows that are read at a time: as many as fit the requests in flight
_APART = 64  # tokens from one to the next: too far to be read over


class DriveProbe(Probe):
    """one: seconds of a read of one row; many: of ``_MANY`` apart; stretch: of neighbours; after: seconds it takes
    to be told of many rows that are there; ask: to ask for one; write: seconds of a write that is waited for."""

    label = "the drive"

    def __init__(self, geometry: Geometry, cold_dir: Path | None) -> None:
        super().__init__()
        self.row_bytes = geometry.row_bytes
        self.folder = cold_dir or default_cold_dir()
        self._device = open_device(StoreSettings(cold_dir=cold_dir), geometry, 4 * _TOKENS, lambda *_: None)
        self._rows = torch.randn(_TOKENS, geometry.row_stride).to(geometry.dtype).view(torch.uint8).numpy()
        self._out = np.empty_like(self._rows)
        self._written = 0
        self._random = np.random.default_rng(5)
        self.stretch = min(_TOKENS, (4 << 20) // self.row_bytes)
        self._device.append(Stream(0, 0), 0, self._rows, None)
        self._device.flush()

    def step(self) -> None:
        places = self._random.integers(0, _APART, _MANY) // 2 + np.arange(_MANY) * (_TOKENS // _MANY)
        one = self._random.integers(0, _TOKENS, 1)
        first = int(self._random.integers(0, _TOKENS - self.stretch + 1))
        self._read("one", one)
        self._read("many", places)
        self._read("stretch", np.arange(first, first + self.stretch))
        start = perf_counter()
        ticket = self._device.read(Stream(0, 0), one, self._out[:1])
        self.samples["ask"].append(perf_counter() - start)
        ticket.wait()
        ticket = self._device.read(Stream(0, 0), places, self._out[:_MANY])
        time.sleep(0.02)
        self.take("after", ticket.wait)

    def _read(self, name: str, positions: np.typing.NDArray[np.int64]) -> None:
        start = perf_counter()
        ticket = self._device.read(Stream(0, 0), positions, self._out[: len(positions)])
        ticket.wait()
        self.samples[name].append(perf_counter() - start)
        self.samples[f"{name} requests"].append(ticket.requests)

    def write(self) -> None:
        """A write, once: files grow by it."""
        stream = Stream(0, 1)

        def append() -> None:
            self._device.append(stream, self._written, self._rows, None)
            self._device.flush()

        self.take("write", append)
        self._written += _TOKENS

    # ---- what follows

    @property
    def latency(self) -> float:
        """Seconds of one small read."""
        return self.median("one")

    @property
    def iops(self) -> float:
        """Small reads per second, many in flight."""
        return self.median("many requests") / max(1e-9, self.median("many") - self.median("one"))

    @property
    def request(self) -> float:
        """Seconds of a small read, many in flight, that its bytes don't explain."""
        return max(0.0, 1 / self.iops - self.row_bytes / self.read_rate)

    @property
    def read_rate(self) -> float:
        """Bytes per second of large reads."""
        return self.stretch * self.row_bytes / max(1e-9, self.median("stretch") - self.median("one"))

    @property
    def write_rate(self) -> float:
        """Bytes per second."""
        return self._rows.nbytes / self.median("write")

    @property
    def row(self) -> float:
        """Seconds of the processor per row that has arrived."""
        return self.median("after") / _MANY

    @property
    def capacity(self) -> float:
        """Bytes of the file system."""
        return float(shutil.disk_usage(self.folder).total)

    def close(self) -> None:
        self._device.close()
