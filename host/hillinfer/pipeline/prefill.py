"""Exact attention of new tokens to a stream that lies in the tiers: how every engine with a store reads a prompt."""

from __future__ import annotations

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
    for rows in stream.pieces(count=count):
        part = _attend_piece(geometry, query, rows, scaling)
        total = part if total is None else merge([total, part])
    own = attend(query, keys, values, scaling, causal=True)
    return own if total is None else merge([total, own])


def _attend_piece(geometry: Geometry, query: torch.Tensor, rows: torch.Tensor, scaling: float) -> Partial:
    """Of a query [H, G, T, d] to all of rows [n, row_stride]; a step's one token takes what steps are made of."""
    if query.shape[2] > 1 or query.device.type != "cpu":
        return attend(query, *geometry.unpack_rows(rows.to(query.device)), scaling)
    every = np.arange(rows.shape[0])
    attention = attend_rows(geometry, query, scaling, len(every))
    attention.add(rows, every, every)
    out, lse = attention.finish()
    return out, lse[:, :, None]
