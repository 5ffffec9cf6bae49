"""Top-k of integer scores against a sort."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.kv.selection import holding_mass, top

_scores = st.lists(st.integers(-32768, 32767) | st.integers(-3, 3), min_size=1, max_size=200)


@given(_scores, st.integers(0, 220))
def test_top_takes_the_highest_and_of_equals_the_newest(scores, count):
    array = np.array(scores, np.int16)
    order = sorted(range(len(scores)), key=lambda i: (scores[i], i), reverse=True)
    assert top(array, count).tolist() == sorted(order[:count])


@given(_scores, st.floats(0.01, 1), st.integers(1, 200))
def test_mass_takes_the_fewest_that_hold_it(scores, mass, most):
    array = np.array(scores, np.int16)
    count = holding_mass(array, mass, most)
    weights = np.sort(np.exp((array.astype(float) - max(scores)) / 256))[::-1]
    total = weights.sum()
    assert count == most or weights[:count].sum() >= mass * total - 1e-9 * total
    assert count <= most
    assert weights[: count - 1].sum() < mass * total + 1e-9 * total
