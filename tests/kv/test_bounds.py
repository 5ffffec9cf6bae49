"""Bounds of chunks: they hold for every key, and do not depend on how many keys came at a time."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.kv.bounds import ChunkBounds, signed, swapped
from hillinfer.kv.growing import rows_allocated

CPU = torch.device("cpu")


@given(parts=st.lists(st.integers(0, 40), min_size=1, max_size=6), chunk=st.integers(1, 17), seed=st.integers(0, 99))
def test_bounds_hold_for_every_key_and_any_parts(parts, chunk, seed):
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn(2, sum(parts), 8, generator=generator)
    query = torch.randn(2, 8, generator=generator)
    bounds = ChunkBounds(2, 8, chunk, torch.float32, CPU)
    for part in keys.split(parts, 1):
        bounds.extend(part)
    assert bounds.tokens == sum(parts)
    assert len(bounds) == -(-sum(parts) // chunk)
    assert bounds.nbytes <= 2 * 16 * 4 * rows_allocated(len(bounds))
    for index in range(len(bounds)):
        inside = keys[:, index * chunk : (index + 1) * chunk]
        assert torch.equal(bounds.extremes[:, index], torch.cat([inside.amax(1), inside.amin(1)], -1))
        logits = torch.einsum("hd,hnd->hn", query, inside)
        upper = (signed(query) * bounds.extremes[:, index]).sum(-1, keepdim=True)
        lower = (swapped(query) * bounds.extremes[:, index]).sum(-1, keepdim=True)
        assert (logits <= upper + 1e-4).all()
        assert (logits >= lower - 1e-4).all()
