"""Copies to and from a compute device: what can be tested without one (tests/gpu has the rest)."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.kv.device_copies import Arriving, parts_of, send, space

CPU = torch.device("cpu")
SHAPES = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), min_size=1, max_size=3).map(torch.Size),
        st.sampled_from([torch.float32, torch.float16, torch.int64, torch.bool]),
    ),
    min_size=1,
    max_size=5,
)


@settings(max_examples=50, deadline=None)
@given(SHAPES)
def test_parts_of_a_block_have_their_shapes_lie_apart_and_within(shapes):
    block = torch.zeros(space(shapes), dtype=torch.uint8)
    parts = parts_of(block, shapes)
    assert [(part.shape, part.dtype) for part in parts] == shapes
    assert all((part.data_ptr() - block.data_ptr()) % 64 == 0 for part in parts if part.numel())
    for part in parts:
        part.view(torch.uint8).add_(1)
    assert int(block.sum()) == sum(part.numel() * part.dtype.itemsize for part in parts)
    assert not bool((block > 1).any())


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 19), max_size=30))
def test_rows_are_taken_and_what_is_beside_them_comes_along(index):
    rows, places = torch.arange(60).view(20, 3), torch.tensor(index, dtype=torch.int64)
    taken, beside = send(CPU, rows, places, places)
    assert torch.equal(taken, rows[places])
    assert torch.equal(beside, places)
    assert torch.equal(send(CPU, rows, None)[0], rows)


def test_what_is_in_dram_has_arrived():
    tensor = torch.arange(5)
    assert Arriving(tensor).wait() is tensor
