"""ShadowKV against an oracle that makes every landmark anew, in double precision."""

from __future__ import annotations

import pytest
import torch

from hillinfer.errors import SettingError
from hillinfer.policies.shadowkv import ShadowKV
from tests.policies.stepwise import SCALING, SHAPES, compare, newest_first


def _oracle(policy):
    def expected(layer, seen):
        keys, query = seen.keys[layer].double(), seen.query[layer].double()
        tokens, size = keys.shape[1], policy.chunk
        older = max(0, tokens - policy.recent) // size
        recent = list(range(older * size, tokens))
        room = (policy.attended(tokens) - len(recent)) // size
        if policy.attended(tokens) >= tokens or room >= older:
            return None
        sets = []
        for head in range(keys.shape[0]):
            chunks = [keys[head, c * size : (c + 1) * size] for c in range(older)]
            means = [chunk.mean(0) for chunk in chunks]
            cosines = [
                min(float(torch.cosine_similarity(mean, key, 0)) for key in chunk)
                for mean, chunk in zip(means, chunks, strict=True)
            ]
            outliers = newest_first([-c for c in cosines], min(policy.outliers, room // 4))
            rest = [c for c in range(older) if c not in outliers]
            weights = torch.stack([torch.stack([means[c] for c in rest]) @ q * SCALING for q in query[head]])
            best = weights.softmax(-1).amax(0).tolist()
            chosen = outliers + [rest[i] for i in newest_first(best, room - len(outliers))]
            sets.append([t for c in sorted(chosen) for t in range(c * size, (c + 1) * size)] + recent)
        return sets

    return expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sequences", [1, 3])
def test_every_step_selects_like_the_oracle(tmp_path, shape, sequences):
    policy = ShadowKV(budget="50%", outliers=3, recent=16)
    got = compare(tmp_path, policy, _oracle(policy), shape, layers=1, sequences=sequences, steps=12, whole=False)
    assert got == 12 * sequences


@pytest.mark.parametrize("settings", [{"outliers": 0}, {"recent": 0}, {"chunk": 3}])
def test_other_settings(tmp_path, settings):
    policy = ShadowKV(budget=90, **settings)
    assert compare(tmp_path, policy, _oracle(policy), (2, 2), layers=1, steps=10, whole=False) == 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chunk": 0}, "at least 1 token"),
        ({"recent": -1}, "not be negative"),
        ({"outliers": -1}, "not be negative"),
        ({"budget": 47}, r"shadowkv needs at least 48 \(32 recent tokens"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(SettingError, match=message):
        ShadowKV(**settings)
