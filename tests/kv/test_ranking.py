"""The best of each row, and the tokens of chunks, against a sort and a list."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.kv.ranking import best, spread

_SCORES = st.sampled_from([-np.inf, np.nan, -2.0, 0.0, 0.5, 1.0, 1.0, np.inf])


@given(rows=st.integers(1, 3), n=st.integers(1, 20), count=st.integers(-1, 25), data=st.data())
def test_the_best_are_the_first_of_a_sort_newest_first(rows, n, count, data):
    scores = np.array([[data.draw(_SCORES) for _ in range(n)] for _ in range(rows)], np.float32)
    found = best(scores, count)
    ranked = np.where(np.isnan(scores), -np.inf, scores)
    for row, places in zip(ranked, found, strict=True):
        order = sorted(range(n), key=lambda i: (row[i], i), reverse=True)
        assert places.tolist() == sorted(order[: max(0, count)])


@given(tokens=st.integers(1, 60), size=st.integers(1, 9), data=st.data())
def test_chunks_are_spread_to_their_tokens(tokens, size, data):
    chunks = -(-tokens // size)
    count = data.draw(st.integers(0, chunks))
    picks = [sorted(data.draw(st.permutations(range(chunks)))[:count]) for _ in range(2)]
    found = spread(np.array(picks, np.int64).reshape(2, count), size, tokens)
    for places, chosen in zip(found, picks, strict=True):
        assert places.tolist() == [t for c in chosen for t in range(c * size, min((c + 1) * size, tokens))]
