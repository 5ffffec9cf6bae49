"""Pooled softmax rows and the top of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.profiling.importance import pooled, softmax_rows, top_mask, top_positions


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.integers(0, 45))
def test_the_top_is_that_of_a_sort_and_ties_go_to_the_newest(values, count):
    order = sorted(range(len(values)), key=lambda i: (values[i], i), reverse=True)
    scores = torch.tensor(values, dtype=torch.float32)
    assert top_positions(scores, count).tolist() == sorted(order[:count])
    both = top_mask(torch.stack([scores, scores]), count)
    assert torch.equal(both[0], both[1])
    assert int(both[0].sum()) == min(count, len(values))


@pytest.mark.parametrize("kernel", [1, 5, 7])
def test_pooling_is_a_mean_over_the_window_with_zeros_outside(kernel):
    row = np.random.default_rng(0).random(30).astype(np.float32)
    half = kernel // 2
    padded = np.pad(row, half)
    expected = [padded[i : i + kernel].mean() for i in range(30)]
    np.testing.assert_allclose(pooled(torch.from_numpy(row), kernel), expected, rtol=1e-5)
    assert pooled(torch.ones(2, 3, 30), kernel).shape == (2, 3, 30)


def test_softmax_rows_share_the_keys_of_a_group():
    generator = torch.Generator().manual_seed(0)
    query, keys = torch.randn(2, 3, 8, generator=generator), torch.randn(2, 11, 8, generator=generator)
    rows = softmax_rows(query, keys, 0.3)
    for head in range(2):
        for member in range(3):
            torch.testing.assert_close(rows[head, member], (keys[head] @ query[head, member] * 0.3).softmax(0))
