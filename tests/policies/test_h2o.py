"""H2O against its oracle: mass received by every query so far, causal, kept through eviction."""

from collections import defaultdict

import pytest

from hillinfer.policies import H2O
from tests.policies.oracle import KINDS, NEW, Plain, check, record


class HeavyAndRecent(Plain):
    def start(self):
        self.mass = [defaultdict(float) for _ in range(self.heads)]

    def attended(self, head, member, position, positions, row):  # noqa: ARG002
        for each, weight in zip(positions, row.tolist(), strict=True):
            self.mass[head][each] += weight

    def ranks(self, head, budget):
        recent = len(self.keys) - (budget - budget // 2)
        return [float("inf") if p >= recent else self.mass[head][p] for p in self.kept[head]]


@pytest.mark.parametrize(("kv_heads", "batch"), KINDS)
def test_every_step_attends_like_the_oracle(kv_heads, batch):
    calls = record(H2O(budget="25%"), kv_heads, batch)
    streams, decoded = check(calls, HeavyAndRecent, lambda cached: int(cached * 0.25))
    assert decoded == 2 * batch * (NEW - 1)
    newest = [p for p in streams[0][0].kept[0] if p < 44]
    assert newest, "some heavy hitter is older than the recent half"
