"""SnapKV against its oracle: the window's softmax rows, summed, averaged over the group, pooled."""

import pytest
import torch

from hillinfer.policies import SnapKV
from tests.policies.oracle import KINDS, NEW, Plain, check, record

WINDOW = 8


class LooksBack(Plain):
    """Importance of what came before the window is fixed when the prompt is over."""

    pooling = "mean"

    def finish(self):
        self.prompt = len(self.keys)
        self.safe = self.prompt - WINDOW
        self.importance = [self.pool(self.looked_at(head)) for head in range(self.heads)]

    def rows(self, head, member):
        """Softmax rows of the window's queries over all before it, [W, n]."""
        rows = []
        for t in range(self.safe, self.prompt):
            row = self.row(head, self.queries[t][head, member], range(t + 1))
            rows.append(row[: self.safe])
        return torch.stack(rows)

    def looked_at(self, head):
        return sum(self.rows(head, member).sum(0) for member in range(self.group)) / self.group

    def pool(self, scores):
        padded = [0.0, 0.0, *scores.tolist(), 0.0, 0.0]
        groups = [padded[i : i + 5] for i in range(len(scores))]
        return [max(each) if self.pooling == "max" else sum(each) / 5 for each in groups]

    def ranks(self, head, budget):  # noqa: ARG002
        return [float("inf") if p >= self.safe else self.importance[head][p] for p in self.kept[head]]


class LooksBackMax(LooksBack):
    pooling = "max"


@pytest.mark.parametrize(("kv_heads", "batch"), KINDS)
def test_every_step_attends_like_the_oracle(kv_heads, batch):
    calls = record(SnapKV(budget="25%", window=WINDOW), kv_heads, batch)
    _, decoded = check(calls, LooksBack, lambda cached: int(cached * 0.25))
    assert decoded == 2 * batch * (NEW - 1)


def test_pooling_by_the_largest():
    calls = record(SnapKV(budget=20, window=WINDOW, pooling="max"), 2, 1)
    check(calls, LooksBackMax, lambda cached: min(20, cached))


def test_generated_tokens_are_kept_on_top_when_asked():
    calls = record(SnapKV(budget=20, window=WINDOW, keep_generated=True), 2, 1)
    check(calls, LooksBack, lambda cached: 20 + max(0, cached - 60))
    assert {len(head) for head in calls[-1].sets} == {20 + NEW - 2}
