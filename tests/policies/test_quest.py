"""Quest against an oracle that looks at every key of every page."""

from __future__ import annotations

import pytest

from hillinfer.errors import SettingError
from hillinfer.policies.quest import Quest
from tests.policies.stepwise import SHAPES, compare, newest_first


def _oracle(policy):
    def expected(layer, seen):
        keys, query = seen.keys[layer], seen.query[layer]
        tokens, page = keys.shape[1], policy.page
        starts = range(0, tokens, page)
        count = policy.attended(tokens) // page
        if layer < policy.dense_layers or count >= len(starts):
            return None
        sets = []
        for head in range(keys.shape[0]):
            scores = []
            for start in starts:
                low, high = keys[head, start : start + page].amin(0), keys[head, start : start + page].amax(0)
                scores.append(max(float((q * low).maximum(q * high).sum()) for q in query[head]))
            scores[-1] = float("inf")
            pages = newest_first(scores, count)
            sets.append([t for p in pages for t in range(p * page, min((p + 1) * page, tokens))])
        return sets

    return expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sequences", [1, 3])
def test_every_step_selects_like_the_oracle(tmp_path, shape, sequences):
    policy = Quest(budget="40%", dense_layers=1)
    assert compare(tmp_path, policy, _oracle(policy), shape, sequences=sequences, steps=20, again=21) == 20 * sequences


def test_pages_of_another_size_and_a_number_of_tokens(tmp_path):
    policy = Quest(budget=50, page=5, dense_layers=0)
    assert compare(tmp_path, policy, _oracle(policy), (2, 2), steps=12) == 24


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"page": 0}, "at least 1 token"),
        ({"dense_layers": -1}, "not negative"),
        ({"budget": 31}, r"quest needs at least 32 \(the last page of 16 tokens and one more\)"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(SettingError, match=message):
        Quest(**settings)
