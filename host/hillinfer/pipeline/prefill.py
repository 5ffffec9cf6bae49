"""Exact attention of new tokens to a stream that lies in the tiers: how every engine with a store reads a prompt."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from hillinfer.kv.attention import Partial, attend, merge
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.row_attention import attend_rows
from hillinfer.store.token_stream import TokenStream


def attend_stream(
    geometry: Geometry,
    stream: TokenStream,
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scaling: float,
    *,
    count: bool = False,
) -> Partial:
    """Causal attention of a query [H, G, T, d] to all of the stream and to its own keys and values [H, T, d].

    Rows of any tier are brought in piece by piece, so that memory does not grow with the context.

    count   the ledger counts the rows as selected by a step
    """
    total: Partial | None = None
    for part in _parts(geometry, stream, query, scaling, count):
        total = part if total is None else merge([total, part])
    own = attend(query, keys, values, scaling, causal=True)
    return own if total is None else merge([total, own])


def _parts(
    geometry: Geometry, stream: TokenStream, query: torch.Tensor, scaling: float, count: bool
) -> Iterator[Partial]:
    """Attention of a query [H, G, T, d] to the stream piece by piece. One token's looks at rows where they lie."""
    if query.shape[2] > 1 or not stream.read_in_place:
        for rows in stream.pieces(count=count):
            yield attend(query, *geometry.unpack_rows(rows.to(query.device)), scaling)
        return
    for located in stream.parts(count=count):
        hot, cold, newest = len(located.hot), len(located.cold), len(located.newest)
        attention = attend_rows(geometry, query, scaling, hot + cold + newest)
        attention.add(stream.hot_pool.rows, located.hot, located.hot_ranks)
        attention.add(stream.device_tier.rows, located.newest, np.arange(hot + cold, hot + cold + newest))
        attention.add(located.wait(), np.arange(cold), located.cold_ranks)
        out, lse = attention.finish()
        yield out, lse[:, :, None]
