"""Attention to rows where they lie, in any number of parts, against one plain softmax."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer import _native
from hillinfer.kv import row_attention
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.row_attention import attend_rows

TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}


@pytest.fixture(params=[*_native.variants(), "gathered"])
def way(request, monkeypatch, use_variant):
    """Each instruction set that this processor has, and the way of other devices."""
    if request.param == "gathered":
        monkeypatch.setattr(row_attention, "ELEMENTS", {})
    else:
        use_variant(request.param)


@pytest.mark.usefixtures("way")
@settings(max_examples=40, deadline=None)
@given(
    heads=st.integers(1, 4),
    group=st.integers(1, 7),
    dim=st.sampled_from([8, 16, 40, 64, 80, 128, 256]),
    dtype=st.sampled_from(list(TOLERANCE)),
    parts=st.lists(st.integers(0, 1500), min_size=1, max_size=4),
    spread=st.sampled_from([0.1, 1.0, 30.0]),
    seed=st.integers(0, 2**31 - 1),
)
def test_any_parts_give_the_softmax_over_all(heads, group, dim, dtype, parts, spread, seed):
    generator = torch.Generator().manual_seed(seed)
    geometry = Geometry(1, heads, group, dim, dtype)
    query = (torch.randn(heads, group, 1, dim, generator=generator) * spread).to(dtype)
    parts = [*parts, 1]  # at least one row for every head
    keys = torch.randn(heads, sum(parts) + 7, dim, generator=generator).to(dtype)
    values = torch.randn(heads, sum(parts) + 7, dim, generator=generator).to(dtype)
    rows = geometry.pack_rows(keys, values)
    order = torch.randperm(len(rows), generator=generator)[: sum(parts)]
    head = int(torch.randint(heads, (1,), generator=generator))
    attention, seen = attend_rows(geometry, query, 0.125, len(order)), torch.zeros(heads, len(rows), dtype=torch.bool)
    ranks = torch.arange(len(order)).split(parts)
    for number, (part, rank) in enumerate(zip(order.split(parts), ranks, strict=True)):
        alone = head if number % 2 and number < len(parts) - 1 else None  # some parts are one head's only
        attention.add(rows, part.numpy(), rank.numpy(), alone)
        seen[slice(None) if alone is None else alone, part] = True
    out, lse = attention.finish()
    logits = torch.einsum("hgd,hnd->hgn", query[:, :, 0].double(), keys.double()) * 0.125
    logits = logits.masked_fill(~seen[:, None], -math.inf)
    expected = torch.einsum("hgn,hnd->hgd", logits.softmax(-1), values.double())
    scale = float(values.double().abs().max())
    assert out.dtype == dtype
    assert float((out[:, :, 0].double() - expected).abs().max()) <= TOLERANCE[dtype] * scale * max(1.0, spread)
    largest = float(logits[logits.isfinite()].abs().max())
    assert np.abs(lse.numpy() - logits.logsumexp(-1).numpy()).max() <= max(1e-5, TOLERANCE[dtype]) * max(1.0, largest)


def test_halves_of_every_kind_are_read_as_they_are():
    bits = np.arange(65536, dtype=np.uint16)
    for dtype in (torch.float16, torch.bfloat16):
        every = torch.from_numpy(bits.copy()).view(dtype)
        finite = every[every.isfinite() & (every.abs() < 1e30)]
        finite = finite[: len(finite) // 16 * 16].view(-1, 1, 16)
        geometry = Geometry(1, 1, 1, 16, dtype)
        for each in finite[::97]:
            rows = geometry.pack_rows(torch.zeros(1, 1, 16, dtype=dtype), each[None])
            attention = attend_rows(geometry, torch.zeros(1, 1, 1, 16), 1.0, 1)
            attention.add(rows, np.zeros(1, np.int64), np.zeros(1, np.int64))
            out, _ = attention.finish()
            torch.testing.assert_close(out[0, 0, 0], each[0].float(), rtol=0, atol=0)


def test_rows_that_are_not_there_are_refused():
    geometry = Geometry(1, 1, 1, 8, torch.float32)
    attention = attend_rows(geometry, torch.zeros(1, 1, 1, 8), 1.0, 1)
    for index in ([3], [-1]):
        with pytest.raises(ValueError, match="no such row"):
            attention.add(torch.zeros(3, geometry.row_stride), np.array(index), np.zeros(1, np.int64))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=50, max_size=50), st.integers(0, 2**31 - 1))
def test_not_one_bit_depends_on_the_order_in_which_rows_are_added(parts, seed):
    generator = torch.Generator().manual_seed(seed)
    geometry = Geometry(1, 2, 3, 40, torch.float32)
    query = torch.randn(2, 3, 1, 40, generator=generator)
    rows = torch.randn(50, geometry.row_stride, generator=generator)
    whole, pieces = attend_rows(geometry, query, 0.2, 50), attend_rows(geometry, query, 0.2, 50)
    whole.add(rows, np.arange(50), np.arange(50))
    for part in range(4):
        ranks = np.flatnonzero(np.array(parts) == part)
        pieces.add(rows[torch.from_numpy(ranks)].contiguous(), np.arange(len(ranks)), ranks)
    for a, b in zip(whole.finish(), pieces.finish(), strict=True):
        np.testing.assert_array_equal(a, b)
