"""CAKE against its oracle: mean and variance of the window's rows, and layers by entropy and variance."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.policies import CAKE
from hillinfer.policies.shares import spread, whole
from tests.policies.oracle import KINDS, NEW, check, record
from tests.policies.test_snapkv import WINDOW, LooksBack

TAU1, TAU2 = 0.5, 0.4


class Cake(LooksBack):
    def looked_at(self, head):
        raise NotImplementedError

    def finish(self):
        self.prompt, self.safe = len(self.keys), len(self.keys) - WINDOW
        self.importance, entropy, variance = [], 0.0, 0.0
        for head in range(self.heads):
            total = [0.0] * self.safe
            for member in range(self.group):
                rows = self.rows(head, member)
                mean = rows.sum(0) / WINDOW
                var = ((rows - mean) ** 2).sum(0) / (WINDOW - 1)
                pooled = self.pool(mean + 200 * var)
                total = [a + b / self.group for a, b in zip(total, pooled, strict=True)]
                entropy -= float((rows * (rows + 1e-10).log()).sum())
                variance += float(var.sum())
            self.importance.append(total)
        self.preference = entropy ** (1 / TAU1) * variance ** (1 / TAU2)

    @staticmethod
    def shares(streams, mean, cached):
        """Two layers: in proportion to their preferences, none more than there is."""
        one, two = (stream.preference for stream in streams)
        total, most = 2 * (mean - WINDOW), cached - WINDOW
        first = total * one / (one + two)
        first = min(max(first, total - most), most)
        return [WINDOW + int(first + 1e-6), WINDOW + total - int(first + 1e-6)]


@pytest.mark.parametrize(("kv_heads", "batch"), KINDS)
def test_every_step_attends_like_the_oracle(kv_heads, batch):
    calls = record(CAKE(budget="45%", window=WINDOW, tau1=TAU1, tau2=TAU2), kv_heads, batch)
    streams, decoded = check(calls, Cake, lambda cached: int(cached * 0.45))
    assert decoded == 2 * batch * (NEW - 1)
    assert len({len(stream.kept[0]) for stream in streams[0]}) == 2  # the layers differ


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.integers(0, 5000), st.integers(1, 200))
def test_shares_are_whole_bounded_and_add_up(preferences, total, most):
    parts = spread(preferences, total, most)
    rows = whole(parts)
    assert sum(rows) == min(total, most * len(rows))
    assert all(0 <= each <= most for each in rows)
    assert all(abs(each - part) <= 1 for each, part in zip(rows, parts, strict=True))
