"""A software device on a real folder, and rows and keys to put on it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from hillinfer.csd.contract import Device, Stream
from hillinfer.csd.software import SoftwareDevice
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.keys import ScoringKeys, cast_keys
from hillinfer.kv.query import QuantisedQuery

GEOMETRY = Geometry(layers=2, kv_heads=2, group=3, head_dim=16, dtype=torch.float32)


@dataclass
class Filled:
    """A device, and plain copies of what was put on it."""

    device: Device
    rows: dict[Stream, np.ndarray] = field(default_factory=dict)
    keys: dict[Stream, ScoringKeys] = field(default_factory=dict)

    def append(self, stream: Stream, tokens: int, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        shape = (GEOMETRY.kv_heads, tokens, GEOMETRY.head_dim)
        keys, values = torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)
        rows = GEOMETRY.pack_rows(keys, values).view(torch.uint8).numpy()
        cast = cast_keys(keys)
        before = self.rows.get(stream, np.empty((0, GEOMETRY.row_bytes), np.uint8))
        self.device.append(stream, len(before), rows, cast)
        self.rows[stream] = np.concatenate([before, rows])
        if stream in self.keys:
            old = self.keys[stream]
            cast = ScoringKeys(
                np.concatenate([old.integers, cast.integers]), np.concatenate([old.exponents, cast.exponents])
            )
        self.keys[stream] = cast


def some_query(seed: int = 0, reduce: str = "max") -> QuantisedQuery:
    rng = np.random.default_rng(seed)
    shape = (GEOMETRY.kv_heads, GEOMETRY.group)
    return QuantisedQuery(
        rng.integers(-127, 128, (*shape, GEOMETRY.head_dim)).astype(np.int8),
        rng.integers(2**15, 2**16, shape).astype(np.int32),
        rng.integers(10, 20, shape).astype(np.int32),
        rng.integers(-500, 500, shape).astype(np.int32),
        reduce,
        tuple(range(GEOMETRY.kv_heads)),
    )


def open_software(folder, region_tokens=1 << 16):
    return SoftwareDevice(GEOMETRY, folder, create=False, region_tokens=region_tokens, record=lambda *_: None)


@pytest.fixture
def filled(tmp_path):
    with contextlib.closing(open_software(tmp_path)) as device:
        yield Filled(device)
