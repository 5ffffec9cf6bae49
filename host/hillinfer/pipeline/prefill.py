"""Exact attention of new tokens to a stream that lies in the tiers: how every engine with a store reads a prompt."""

from __future__ import annotations

import torch

from hillinfer.kv.attention import Partial, attend, merge
from hillinfer.kv.geometry import Geometry
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
        part = attend(query, *geometry.unpack_rows(rows.to(query.device)), scaling)
        total = part if total is None else merge([total, part])
    own = attend(query, keys, values, scaling, causal=True)
    return own if total is None else merge([total, own])
