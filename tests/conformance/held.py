"""A device, plain copies of what was put on it, and what the NumPy model says of that."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import torch

from hillinfer.csd.contract import Device, Run, Stream
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.keys import ScoringKeys, cast_keys
from hillinfer.kv.query import QuantisedQuery
from tb import qk_model


@dataclass
class Held:
    """Streams are made by ``fresh``, so that tests can share a device; opening one can take seconds."""

    device: Device
    geometry: Geometry
    rows: dict[Stream, np.ndarray] = field(default_factory=dict)
    keys: dict[Stream, ScoringKeys] = field(default_factory=dict)
    _sequences: itertools.count = field(default_factory=itertools.count)

    def fresh(self, tokens: int = 0, *, layer: int = 0, seed: int = 0) -> Stream:
        """A stream that nobody has, of so many tokens."""
        stream = Stream(layer, next(self._sequences))
        if tokens:
            self.append(stream, tokens, seed)
        return stream

    def append(self, stream: Stream, tokens: int, seed: int = 0) -> None:
        rng = np.random.default_rng([seed, *stream])
        rows, keys = random_tokens(rng, self.geometry, tokens)
        held = self.rows.get(stream, np.empty((0, self.geometry.row_bytes), np.uint8))
        self.device.append(stream, len(held), rows, keys)
        self.rows[stream] = np.concatenate([held, rows])
        if stream in self.keys:
            old = self.keys[stream]
            keys = ScoringKeys(
                np.concatenate([old.integers, keys.integers]), np.concatenate([old.exponents, keys.exponents])
            )
        self.keys[stream] = keys

    def expected(self, stream: Stream, query: QuantisedQuery, run: Run) -> np.ndarray:
        """The model's scores of a run, int16 [tokens]."""
        enabled = np.zeros(query.m.shape, bool)
        enabled[list(query.heads)] = True
        keys, stop = self.keys[stream], run.first + run.tokens
        integers, exponents = keys.integers[run.first : stop], keys.exponents[run.first // TILE : stop // TILE]
        return qk_model.scores(query.q8, integers, exponents, query.m, query.r, query.o, enabled, query.reduce)

    def check(self, stream: Stream, query: QuantisedQuery, runs: list[Run], blocks: list) -> None:
        """Score Blocks of all runs, whole, in order, and the model's."""
        scores = [block.scores for block in blocks]
        places = [position for block in blocks for position in block.positions]
        assert places == [position for run in runs for position in range(run.first, run.first + run.tokens)]
        np.testing.assert_array_equal(
            np.concatenate(scores), np.concatenate([self.expected(stream, query, run) for run in runs])
        )


def random_tokens(rng: np.random.Generator, geometry: Geometry, tokens: int) -> tuple[np.ndarray, ScoringKeys]:
    """Rows uint8 [tokens, row_bytes] of keys and values of any size, and those keys as they are scored."""
    shape = (geometry.kv_heads, tokens, geometry.head_dim)
    sizes = np.exp2(rng.integers(-6, 7, (geometry.kv_heads, tokens // TILE))).repeat(TILE, axis=1)
    keys = torch.from_numpy(rng.standard_normal(shape) * sizes[..., None]).to(geometry.dtype)
    values = torch.from_numpy(rng.standard_normal(shape)).to(geometry.dtype)
    return geometry.pack_rows(keys, values).view(torch.uint8).numpy(), cast_keys(keys)


def random_query(rng: np.random.Generator, geometry: Geometry, reduce: str | None = None) -> QuantisedQuery:
    """Scales that spread scores over int16, a random set of heads.

    More than 8 queries per head take several launches, whose sums must not saturate (docs/kernel.md).
    """
    shape = (geometry.kv_heads, geometry.group)
    reduce = reduce or str(rng.choice(["max", "sum"]))
    shift = 12 if reduce == "sum" and geometry.group > 8 else 0
    heads = sorted(rng.choice(geometry.kv_heads, rng.integers(1, geometry.kv_heads + 1), replace=False).tolist())
    return QuantisedQuery(
        rng.integers(-127, 128, (*shape, geometry.head_dim)).astype(np.int8),
        rng.integers(0, 1 << 16, shape).astype(np.int32),
        rng.integers(8 + shift, 32 + shift, shape).astype(np.int32),
        rng.integers(-2000, 2000, shape).astype(np.int32),
        reduce,
        tuple(heads),
    )


def random_runs(rng: np.random.Generator, tokens: int, *, most: int | None = None) -> list[Run]:
    """One to four runs of whole tiles, ascending and apart, of a stream of so many tokens."""
    tiles = tokens // TILE
    cuts = np.sort(rng.choice(tiles + 1, min(tiles + 1, 2 * int(rng.integers(1, 5))), replace=False))
    pairs = cuts[: len(cuts) // 2 * 2].reshape(-1, 2)
    return [Run(int(first) * TILE, int(min(stop - first, (most or tokens) // TILE)) * TILE) for first, stop in pairs]
