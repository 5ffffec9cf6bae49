"""Top-k of integer scores against a sort."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer import _native
from hillinfer.kv.selection import holding_mass, top

_scores = st.lists(st.integers(-32768, 32767) | st.integers(-3, 3), min_size=1, max_size=200)


@given(_scores, st.integers(0, 220))
def test_top_takes_the_highest_and_of_equals_the_newest(scores, count):
    array = np.array(scores, np.int16)
    order = sorted(range(len(scores)), key=lambda i: (scores[i], i), reverse=True)
    assert top(array, count).tolist() == sorted(order[:count])


@pytest.mark.parametrize("spread", [1, 40, 3000, 40000])  # from many ties to few; saturated at the last
@pytest.mark.parametrize("variant", _native.variants())
def test_a_long_list_has_the_same_top_with_every_instruction_set(use_variant, variant, spread):
    use_variant(variant)
    rng = np.random.default_rng(spread)
    for tokens in (1024, 2500, 20000):
        scores = np.clip(rng.normal(size=tokens) * spread, -32768, 32767).astype(np.int16)
        order = np.lexsort((np.arange(tokens), scores))[::-1]
        for count in (1, 7, tokens // 10, tokens - 1):
            np.testing.assert_array_equal(top(scores, count), np.sort(order[:count]))


@given(_scores, st.floats(0.01, 1), st.integers(1, 200))
def test_mass_takes_the_fewest_that_hold_it(scores, mass, most):
    array = np.array(scores, np.int16)
    count = holding_mass(array, mass, most)
    weights = np.sort(np.exp((array.astype(float) - max(scores)) / 256))[::-1]
    total = weights.sum()
    assert count == most or weights[:count].sum() >= mass * total - 1e-9 * total
    assert count <= most
    assert weights[: count - 1].sum() < mass * total + 1e-9 * total


@given(_scores, st.integers(0, 32767), st.randoms(use_true_random=False))
def test_only_tokens_without_a_slot_are_handicapped(scores, by, rng):
    array = np.array(scores, np.int16)
    slots = [rng.choice([-1, 0, 5]) for _ in range(rng.randint(0, len(scores)))]  # the newest lose nothing
    expected = [max(score - by, -32768) if slot < 0 else score for score, slot in zip(scores, slots, strict=False)]
    _native.handicap(array, np.array(slots, np.int32), by)
    assert array.tolist() == expected + scores[len(slots) :]
