"""A device and the software device, filled alike: whatever one scores, the other must score to the bit."""

from __future__ import annotations

import numpy as np
import torch

from hillinfer.csd.boards.native import NativeBoard
from hillinfer.csd.contract import Run, Stream
from hillinfer.csd.kernel import KernelDevice, KernelSettings
from hillinfer.csd.software import SoftwareDevice
from hillinfer.errors import DeviceError
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import cast_keys
from hillinfer.kv.query import QuantisedQuery, quantise_query
from tests.csd.conftest import GEOMETRY

REGION = 1 << 14


def silent(*_):
    """No trace."""


def open_kernel(
    folder, boards=None, geometry=GEOMETRY, region_tokens=REGION, *, record=silent, fallback=False, **given
):
    """A KernelDevice on native boards, with small pieces unless ``given`` says otherwise."""
    settings = KernelSettings(**{"chunk": 1024, "piece_bytes": 128 << 10, **given})
    return KernelDevice(
        NativeBoard() if boards is None else boards,
        geometry,
        folder,
        create=False,
        region_tokens=region_tokens,
        record=record,
        settings=settings,
        fallback=fallback,
    )


class Failing(NativeBoard):
    """A board whose launches fail once ``left`` of them are done."""

    def __init__(self, left, message="the card fell off the bus", **settings):
        super().__init__(**settings)
        self.left, self.message = left, message

    def run(self, *arguments):
        self.left -= 1
        if self.left < 0:
            raise DeviceError(self.message)
        super().run(*arguments)


class Twins:
    """``device``, and a software device in the same folder."""

    def __init__(self, folder, device, geometry=GEOMETRY, key_format="int8"):
        self.device, self.geometry, self.key_format = device, geometry, key_format
        self.software = SoftwareDevice(geometry, folder, create=False, region_tokens=REGION, record=silent)
        self.held: dict[Stream, int] = {}

    def append(self, stream, tokens, seed=0):
        geometry, generator = self.geometry, torch.Generator().manual_seed(seed)
        shape = (geometry.kv_heads, tokens, geometry.head_dim)
        size = 10.0 ** torch.randint(-6, 7, (geometry.kv_heads, 1, 1), generator=generator)
        keys = (torch.randn(shape, generator=generator) * size).to(geometry.dtype)
        if seed % 3 == 0:
            keys[:, seed % tokens, :3] = torch.tensor([torch.nan, torch.inf, -torch.inf])[: min(3, shape[2])]
        rows = geometry.pack_rows(keys, torch.randn(shape, generator=generator).to(geometry.dtype))
        whole, cast = rows.view(torch.uint8).numpy(), cast_keys(keys, self.key_format)
        first = self.held.get(stream, 0)
        for device in (self.device, self.software):
            device.append(stream, first, whole, cast)
        self.held[stream] = first + tokens

    def query(self, seed=0, reduce="max"):
        """Any query, saturating ones too; a sum over more than 8 queries is one that cannot saturate."""
        geometry, rng = self.geometry, np.random.default_rng(seed)
        shape = (geometry.kv_heads, geometry.group)
        heads = tuple(range(geometry.kv_heads)) if seed % 2 else (seed // 2 % geometry.kv_heads,)
        if reduce == "sum" and geometry.group > 8:
            query = rng.normal(size=(*shape, geometry.head_dim)).astype(np.float32)
            made = quantise_query(query, 0.1, None, np.full(geometry.kv_heads, -16, np.int8), "sum")
            return QuantisedQuery(made.q8, made.m, made.r, made.o, "sum", heads)
        return QuantisedQuery(
            rng.integers(-127, 128, (*shape, geometry.head_dim)).astype(np.int8),
            rng.integers(0, 2**16, shape).astype(np.int32),
            rng.integers(0, 64, shape).astype(np.int32),
            rng.integers(-(2**15), 2**15, shape).astype(np.int32),
            reduce,
            heads,
        )

    def runs(self, stream, seed=0):
        """Some runs of tiles, in order."""
        tiles, rng = self.held[stream] // TILE, np.random.default_rng(seed)
        cuts = np.unique(rng.integers(0, tiles + 1, 2 * int(rng.integers(1, 5))))
        if len(cuts) < 2:
            cuts = np.array([0, tiles])
        pairs = cuts[: len(cuts) // 2 * 2].reshape(-1, 2)
        return [Run(int(start) * TILE, int(stop - start) * TILE) for start, stop in pairs]

    def expected(self, stream, query, runs):
        """Score Blocks of the software device."""
        return list(self.software.submit(stream, query, runs))

    def check(self, stream, query, runs):
        same(list(self.device.submit(stream, query, runs)), self.expected(stream, query, runs))

    def close(self):
        self.device.close()
        self.software.close()


def same(blocks, expected):
    """Assert that Score Blocks are the same."""
    places = [[(block.first, block.scanned, block.index, block.of) for block in each] for each in (blocks, expected)]
    assert places[0] == places[1]
    for block, due in zip(blocks, expected, strict=True):
        np.testing.assert_array_equal(block.positions, due.positions)
        np.testing.assert_array_equal(block.scores, due.scores)


def some_geometry(rng):
    """Any small geometry the kernel takes."""
    dtype = (torch.float32, torch.float16, torch.bfloat16)[int(rng.integers(3))]
    heads, group, dim = int(rng.integers(1, 5)), int(rng.integers(1, 18)), int(rng.integers(3, 161))
    return Geometry(layers=int(rng.integers(1, 4)), kv_heads=heads, group=group, head_dim=dim, dtype=dtype)
