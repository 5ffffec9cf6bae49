"""PyramidKV against its oracle, and its budgets by depth."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.policies import PyramidKV
from tests.policies.oracle import KINDS, NEW, check, record
from tests.policies.test_snapkv import WINDOW, LooksBack


class Pyramid(LooksBack):
    @staticmethod
    def shares(streams, mean, cached):
        """Two layers: the first as much as there is, or twice the mean but a twentieth of it; the last the rest."""
        assert len(streams) == 2
        free = mean - WINDOW
        first = int(min(2 * free - free / 20, cached - WINDOW) + 1e-6)
        return [WINDOW + first, WINDOW + 2 * free - first]


@pytest.mark.parametrize(("kv_heads", "batch"), KINDS)
def test_every_step_attends_like_the_oracle(kv_heads, batch):
    calls = record(PyramidKV(budget="30%", window=WINDOW), kv_heads, batch)
    _, decoded = check(calls, Pyramid, lambda cached: int(cached * 0.3))
    assert decoded == 2 * batch * (NEW - 1)


@given(st.integers(1, 48), st.integers(34, 5000), st.integers(34, 20_000), st.floats(1, 50))
def test_budgets_fall_with_depth_and_keep_their_mean(layers, budget, cached, beta):
    shares = PyramidKV(budget=budget, beta=beta).layer_budgets([None] * layers, cached)
    assert sum(shares) == layers * min(budget, cached)
    assert all(later <= earlier + 1 for earlier, later in pairwise(shares))
    assert all(min(32, cached) <= share <= cached for share in shares)
