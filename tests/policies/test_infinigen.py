"""InfiniGen's index against an oracle with axes of its own (by SVD), in double precision."""

from __future__ import annotations

import pytest
import torch

from hillinfer.errors import SettingError
from hillinfer.policies.infinigen import InfiniGen
from tests.policies.stepwise import DIM, SCALING, SHAPES, compare, newest_first


class _Oracle:
    """Axes settle once per stream, at the first step that asks, by the last queries before it."""

    def __init__(self, policy):
        self.policy = policy
        self.axes = {}

    def __call__(self, layer, seen):
        policy, keys = self.policy, seen.keys[layer].double()
        tokens = keys.shape[1]
        allowed = policy.attended(tokens)
        if layer < policy.dense_layers or allowed >= tokens:
            return None
        if (layer, id(seen)) not in self.axes:
            self.axes[layer, id(seen)] = self._settle(seen.queries[layer].double()[:, :, -policy.skew_tokens :])
        logits = []
        for head, axes in enumerate(self.axes[layer, id(seen)]):
            for query in seen.query[layer][head].double():
                logits.append([float((query @ axes) @ (key @ axes)) * SCALING for key in keys[head]])
        group = seen.query[layer].shape[1]
        counted = int(sum(sum(x > max(each) - policy.margin for x in each) for each in logits) / len(logits))
        count = max(1, min(counted, allowed))
        sets = []
        for head in range(keys.shape[0]):
            heads = logits[head * group : (head + 1) * group]
            sets.append(newest_first([max(each[t] - max(each) for each in heads) for t in range(tokens)], count))
        return sets

    def _settle(self, queries):
        axes = []
        for head in queries:
            flat = head.reshape(-1, DIM)
            vectors = torch.linalg.svd(flat)[2].T
            weight = (flat @ vectors).abs().sum(0).tolist()
            axes.append(vectors[:, newest_first(weight, max(1, int(self.policy.channels * DIM)))])
        return axes


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sequences", [1, 3])
def test_every_step_selects_like_the_oracle(tmp_path, shape, sequences):
    policy = InfiniGen(budget="25%", dense_layers=1, skew_tokens=100, channels=0.3)
    got = compare(tmp_path, policy, _Oracle(policy), shape, sequences=sequences, steps=10, whole=False, again=9)
    assert got == 10 * sequences


def test_a_prompt_shorter_than_the_queries_that_give_the_axes(tmp_path):
    policy = InfiniGen(budget=60, dense_layers=0, margin=1.5, skew_tokens=512)
    assert compare(tmp_path, policy, _Oracle(policy), (2, 2), steps=10, whole=False, again=400) == 20


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"channels": 0}, "above 0 and at most 1"),
        ({"channels": 1.5}, "above 0 and at most 1"),
        ({"margin": -1}, "not be negative"),
        ({"margin": float("nan")}, "not be negative"),
        ({"skew_tokens": 0}, "at least 1 query"),
        ({"dense_layers": -1}, "not negative"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(SettingError, match=message):
        InfiniGen(**settings)
