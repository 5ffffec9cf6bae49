"""One launch with random contents, packed by the host's code, and what the NumPy model says it must write."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hillinfer.csd.abi import Launch, Layout
from hillinfer.csd.native import Library
from hillinfer.kv.query import QuantisedQuery
from tb import qk_model

FORMATS = ("fp16_int8", "fp16_int4", "int8", "int4")
_STRETCH = 1 << 15  # tokens that the model is asked for at a time


@dataclass(frozen=True)
class Case:
    """keys [n, H, d] (uint16 FP16 bits or int8), exponents int8 [tiles, H], and the launch that scores them."""

    layout: Layout
    keys: npt.NDArray[np.generic]
    exponents: npt.NDArray[np.int8]
    query: QuantisedQuery
    min_score: int = -32768
    first: int = 1024
    tag: int = 77

    @property
    def launch(self) -> Launch:
        layout = self.layout
        return Launch(
            len(self.keys), self.first, layout.shape, layout.format(self.query.reduce), self.min_score, self.tag
        )

    def scores(self) -> npt.NDArray[np.int16]:
        """The model's scores, int16 [n]."""
        query = self.query
        enabled = np.zeros(query.m.shape, bool)
        enabled[list(query.heads)] = True
        parts = [np.empty(0, np.int16)]
        for start in range(0, len(self.keys), _STRETCH):
            keys = self.keys[start : start + _STRETCH]
            exponents = self.exponents[start // 64 : start // 64 + -(-len(keys) // 64)]
            if self.layout.keys.startswith("fp16"):
                limit = qk_model.INT8_LIMIT if self.layout.keys == "fp16_int8" else qk_model.INT4_LIMIT
                of_token = qk_model.token_exponents(exponents, len(keys))
                keys = qk_model.cast_fp16(keys, of_token[:, :, None], limit)
            scores = qk_model.scores(query.q8, keys, exponents, query.m, query.r, query.o, enabled, query.reduce)
            parts.append(scores)
        return np.concatenate(parts)

    def expected(self) -> bytes:
        """The model's Score Block slots."""
        return qk_model.score_blocks(self.scores(), self.first, self.tag, self.min_score)

    def run(self, library: Library, *, exact_depth: bool = False) -> bytes:
        """The kernel's, of the one launch that up to 8 queries per KV head take."""
        (query,) = self.layout.pack_query(self.query)
        keys, exps = self.layout.pack_keys(self.keys), self.layout.pack_exponents(self.exponents)
        return library.score(query, keys, exps, self.launch, exact_depth=exact_depth).tobytes()


def random_query(
    rng: np.random.Generator, heads: int, group: int, dim: int, reduce: str, *, wild: bool = False
) -> QuantisedQuery:
    """Scales and shifts whose scores spread over int16; wild: every value the ABI allows."""
    shape = (heads, group)
    return QuantisedQuery(
        rng.integers(-128 if wild else -127, 128, (*shape, dim)).astype(np.int8),
        rng.integers(0, 65536, shape).astype(np.int32),
        rng.integers(0, 64, shape).astype(np.int32) if wild else rng.integers(20, 27, shape).astype(np.int32),
        rng.integers(-(2**23), 2**23, shape).astype(np.int32)
        if wild
        else rng.integers(-2000, 2000, shape).astype(np.int32),
        reduce,
        tuple(range(heads)),
    )


def random_case(
    seed: int,
    keys: str,
    heads: int,
    group: int,
    dim: int,
    tokens: int,
    *,
    pair: bool = False,
    reduce: str = "max",
    min_score: int = -32768,
    wild: bool = False,
) -> Case:
    """Random bits as keys: FP16 has its NaN and subnormals, INT8 its -128, INT4 its -8."""
    rng = np.random.default_rng(seed)
    layout = Layout(keys, heads, group, dim, pair)
    shape, tiles = (tokens, heads, dim), -(-tokens // 64)
    if keys.startswith("fp16"):
        values: npt.NDArray[np.generic] = rng.integers(0, 1 << 16, shape).astype(np.uint16)
    else:
        half = 128 if keys == "int8" else 8
        values = rng.integers(-half, half, shape).astype(np.int8)
    exponents = rng.integers(-128 if wild else -3, 128 if wild else 6, (tiles, heads)).astype(np.int8)
    if pair:
        exponents = np.repeat(exponents[:, ::2], 2, axis=1)[:, :heads]
    return Case(layout, values, exponents, random_query(rng, heads, group, dim, reduce, wild=wild), min_score)
