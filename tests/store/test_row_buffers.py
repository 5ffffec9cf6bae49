"""Memory that is used again: never by two at once, always large enough."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.kv.geometry import Geometry
from hillinfer.store.row_buffers import RowBuffers


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 3000)), max_size=40), st.sampled_from([(1, 8), (2, 64)]))
def test_rows_that_are_out_are_nobody_elses(steps, shape):
    geometry = Geometry(1, shape[0], 1, shape[1], torch.float16)
    buffers, held = RowBuffers(geometry), []
    for number, (take, count) in enumerate(steps):
        if take or not held:
            rows = buffers.take(count)
            assert rows.shape == (count, geometry.row_stride)
            assert rows.dtype == torch.float16
            held.append((rows.fill_(number), number))
        else:
            rows, _ = held.pop(count % len(held))
            buffers.give(rows)
        assert all(bool((rows == mark).all()) for rows, mark in held)


def test_what_was_given_back_is_taken_again():
    buffers = RowBuffers(Geometry(1, 2, 1, 64, torch.float32))
    first = buffers.take(700)
    place = first.data_ptr()
    buffers.give(first)
    assert buffers.take(1000).data_ptr() == place
