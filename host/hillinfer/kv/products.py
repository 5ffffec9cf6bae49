"""Exact integer products q·k of INT8 numbers, by whichever library routine is both exact and fast here.

*INT8 GEMM* (oneDNN through torch) reads the keys as they are: one pass over a quarter of the bytes. Whether it is exact
at the extremes on this processor is found out by trying. *float32 BLAS* is exact everywhere: every partial sum is an
integer below 2^24, in whatever order BLAS adds.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.kv.query import QuantisedQuery

Int8 = npt.NDArray[np.int8]
Products = npt.NDArray[np.generic]
"""Integers [heads·G, n], as int32 or float32."""

_ONE_THREAD = 1 << 18  # multiplications up to which OpenBLAS uses one thread: its others have a lock for all callers
_FEW = 1024  # tokens that are not worth waking torch's threads for
_TRIAL = (4096, 4, 3, 64)  # tokens, KV heads, group, dimension


def by_blas(keys: Int8, query: QuantisedQuery, scratch: npt.NDArray[np.float32]) -> Products:
    """Products of keys [n, H, d] with the query's heads; ``scratch`` float32 [≥ 64, H, d]."""
    tokens, _, dim = keys.shape
    group = query.q8.shape[1]
    queries = query.q8[list(query.heads)].astype(np.float32)
    step = min(len(scratch), max(64, _ONE_THREAD // (group * dim)))
    products = np.empty((len(query.heads), group, tokens), np.float32)
    for start in range(0, tokens, step):
        part = keys[start : start + step]
        copy = scratch[: len(part)]
        np.copyto(copy, part, casting="unsafe")
        for i, head in enumerate(query.heads):
            np.matmul(queries[i], copy[:, head].T, out=products[i, :, start : start + step])
    return products.reshape(-1, tokens)


def by_int8_gemm(keys: Int8, query: QuantisedQuery, scratch: npt.NDArray[np.float32]) -> Products:
    """The same in one call: each query head stands in a row of its own, zero outside its KV head's columns."""
    tokens, kv_heads, dim = keys.shape
    if tokens <= _FEW:
        return by_blas(keys, query, scratch)
    group = query.q8.shape[1]
    rows = torch.zeros(len(query.heads), group, kv_heads, dim, dtype=torch.int8)
    for i, head in enumerate(query.heads):
        rows[i, :, head] = torch.from_numpy(query.q8[head])
    flat = torch.from_numpy(np.ascontiguousarray(keys).reshape(tokens, kv_heads * dim))
    products: torch.Tensor = torch._int_mm(rows.view(-1, kv_heads * dim), flat.t())
    return products.numpy()


Way = Callable[[Int8, QuantisedQuery, npt.NDArray[np.float32]], Products]


@functools.cache
def best_way() -> Way:
    """The faster of the two, if INT8 GEMM is there and exact on this machine."""
    try:
        return by_int8_gemm if _exact_at_extremes() and _seconds(by_int8_gemm) < _seconds(by_blas) else by_blas
    except (AttributeError, RuntimeError):  # no such operation, or not for this processor
        return by_blas


def _trial(keys: Int8, queries: Int8) -> tuple[Int8, QuantisedQuery, npt.NDArray[np.float32]]:
    none = np.zeros(queries.shape[:2], np.int32)
    query = QuantisedQuery(queries, none, none, none, "max", tuple(range(queries.shape[0])))
    return keys, query, np.empty(keys.shape, np.float32)


def _exact_at_extremes() -> bool:
    """Whether sums of the largest products, which saturate 16 bits, come out right."""
    tokens, heads, group, dim = _TRIAL
    rng = np.random.default_rng(0)
    for low, high in ((-127, -126), (126, 127), (-127, 127)):
        keys = rng.integers(low, high + 1, (tokens, heads, dim)).astype(np.int8)
        for sign in (-1, 1):
            case = _trial(keys, np.full((heads, group, dim), sign * 127, np.int8))
            if not np.array_equal(by_int8_gemm(*case), by_blas(*case)):
                return False
    return True


def _seconds(way: Way) -> float:
    tokens, heads, group, dim = _TRIAL
    case = _trial(np.ones((tokens, heads, dim), np.int8), np.ones((heads, group, dim), np.int8))
    times = []
    for _ in range(10):
        start = time.perf_counter()
        way(*case)
        times.append(time.perf_counter() - start)
    return min(times)
