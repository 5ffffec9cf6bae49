"""Placement decisions against the plain rules of the paper."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.store.placement import Placement


def _placement(counts):
    placement = Placement()
    placement.extend(len(counts))
    placement.counts[:] = counts
    return placement


def test_counts_age_and_saturate_and_never_wrap():
    placement = _placement([0, 0, 0])
    previous = 0
    for _ in range(2000):
        placement.count(np.array([1]))
        assert placement.counts[1] >= previous
        previous = int(placement.counts[1])
    assert 30000 < previous <= 65535
    assert placement.counts[0] == 0
    for _ in range(22):
        placement.count(np.array([], np.int64))
    assert 0.45 * previous < placement.counts[1] < 0.55 * previous  # the half-life is 22 steps
    placement.counts[2] = 65535
    placement.count(np.array([2]))
    assert placement.counts[2] > 60000


@given(
    st.lists(st.integers(0, 65535), min_size=2, max_size=60),
    st.integers(0, 2**32 - 1),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_a_swap_takes_only_what_is_worth_it(counts, seed, pinned, most):
    rng = np.random.default_rng(seed)
    tokens = rng.permutation(len(counts))
    hot, cold = tokens[: len(tokens) // 2], np.sort(tokens[len(tokens) // 2 :])
    placement = _placement(counts)
    pinned_from = len(counts) - pinned
    swap = placement.swap(cold, hot, pinned_from, most)
    assert len(swap.promote) == len(swap.demote) <= most
    assert set(swap.promote) <= set(cold)
    assert set(swap.demote) <= set(hot[hot < pinned_from])
    for up, down in zip(swap.promote, swap.demote, strict=True):
        assert counts[up] > counts[down]
    left_hot = sorted(counts[i] for i in set(hot[hot < pinned_from]) - set(swap.demote))
    left_cold = sorted((counts[i] for i in set(cold) - set(swap.promote)), reverse=True)
    if left_hot and left_cold and len(swap.promote) < most:
        assert left_cold[0] <= left_hot[0]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_the_coldest_go_first_and_the_pinned_last(counts, count, pinned_from):
    placement = _placement(counts)
    hot = np.arange(len(counts))
    chosen = placement.coldest(hot, count, pinned_from)
    order = sorted(range(len(counts)), key=lambda i: (i >= pinned_from, counts[i], i))
    assert sorted(chosen.tolist()) == sorted(order[:count])


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(0, 60))
def test_the_hottest(counts, count):
    placement = _placement(counts)
    order = sorted(range(len(counts)), key=lambda i: (counts[i], i), reverse=True)
    assert placement.hottest(len(counts), count).tolist() == sorted(order[:count])
