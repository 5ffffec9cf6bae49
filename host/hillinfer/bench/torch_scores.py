"""How fast torch computes the scores of keys: what the scorer is compared with.

Somebody who uses torch holds keys in FP16, BF16 or FP32, and gets a token's score by a matrix product per head, scaled,
less the normaliser, and the largest per token. The fastest of these formats is what scanning a copy in INT8 or INT4
replaces. torch also has a product of INT8 with INT8 (`torch._int_mm`, no part of its documented interface): of a second
copy of the keys, which torch keeps for nobody, but of the very bytes that our scorer reads. Both are measured.

Keys lie in large pages, as the scorer's do, each call takes a window that is in no cache, keys before queries and the
other way round are tried, and results of products are written where they were written before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

HELD = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
"""Formats that a user of torch holds keys in."""

_FORMATS = {"int8": torch.int8, **HELD}
_BYTES = 128 << 20  # of INT8 keys: each window has left the caches when it comes again
_WINDOW = 16 << 20
_QUIET = 0.1  # quantile of the times that counts: the slower ones are the neighbours'


@dataclass(frozen=True)
class Rival:
    """torch in one format: millions of keys per second, products only, and with the rest of a score."""

    name: str
    products: float
    scores: float


def rivals(heads: int, group: int, dim: int, threads: int, nbytes: int, rounds: int) -> Iterator[Rival]:
    """torch in each of its formats, of ``nbytes`` of INT8 keys [heads, tokens, dim] and as many in the others."""
    tokens = _WINDOW // dim // heads
    windows = max(1, min(_BYTES, nbytes) // _WINDOW)
    integers = [torch.randint(-127, 128, (heads, tokens, dim), dtype=torch.int8) for _ in range(windows)]
    queries = torch.randint(-127, 128, (heads, group, dim), dtype=torch.int8)
    normaliser = torch.full((heads, group, 1), 2.0)
    usual = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for name, dtype in _FORMATS.items():
            query = queries.to(dtype)
            upright = _product(dtype, heads, tokens, group)
            across = _product(dtype, heads, group, tokens)
            calls: list[Callable[[torch.Tensor], object]] = [
                lambda keys: upright(keys, query.mT),  # noqa: B023  # called at once
                lambda keys: across(query, keys.mT),  # noqa: B023
                lambda keys: _best(upright(keys, query.mT), normaliser.mT, 1),  # noqa: B023
                lambda keys: _best(across(query, keys.mT), normaliser, 2),  # noqa: B023
            ]
            seconds: list[list[float]] = [[] for _ in calls]
            keys = [_in_large_pages(window, dtype) for window in integers]
            for index in range(windows * rounds):
                for which, call in enumerate(calls):
                    part = keys[(index + which * windows // len(calls)) % windows]
                    seconds[which].append(_seconds(partial(call, part)))
            quiet = [float(np.quantile(each, _QUIET)) for each in seconds]
            yield Rival(name, *(heads * tokens / min(pair) / 1e6 for pair in (quiet[:2], quiet[2:])))
    finally:
        torch.set_num_threads(usual)


def _in_large_pages(window: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The window in another format, in memory of NumPy, which asks for large pages where torch does not."""
    memory = torch.from_numpy(np.empty(window.numel() * dtype.itemsize, np.uint8)).view(dtype).view(window.shape)
    return memory.copy_(window)


def _product(
    dtype: torch.dtype, heads: int, rows: int, columns: int
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """A matrix product per head, with its result in the same place each time."""
    if dtype != torch.int8:
        result = torch.empty((heads, rows, columns), dtype=dtype)
        return lambda first, second: torch.bmm(first, second, out=result)
    whole = torch.empty((heads, rows, columns), dtype=torch.int32)

    def multiply(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        for head in range(heads):
            torch._int_mm(first[head], second[head], out=whole[head])
        return whole

    return multiply


def _best(products: torch.Tensor, normaliser: torch.Tensor, tokens: int) -> torch.Tensor:
    """A token's score: the largest over heads and queries of its logit less the normaliser."""
    return products.float().mul_(0.01).sub_(normaliser).amax((0, 3 - tokens))


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
