"""OmniKV against an oracle with every key: what a filter layer finds is what the layers behind it attend to."""

from __future__ import annotations

import pytest
import torch

from hillinfer.errors import SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.policies.omnikv import OmniKV
from tests.policies.stepwise import SHAPES, compare, newest_first


def _oracle(policy):
    def expected(layer, seen):
        if layer in policy.filter_layers or layer < policy.filter_layers[0]:
            return None
        source = max(f for f in policy.filter_layers if f < layer)
        keys, query = seen.keys[source], seen.query[source]
        keys = keys[:, : seen.keys[layer].shape[1]]  # by then the filter layer has the new token
        logits = [
            max(float(q @ keys[head, t]) for head, group in enumerate(query) for q in group)
            for t in range(keys.shape[1])
        ]
        return [newest_first(logits, policy.attended(len(logits)))]

    return expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sequences", [1, 3])
def test_every_step_selects_like_the_oracle(tmp_path, shape, sequences):
    policy = OmniKV(budget="25%", filter_layers=(1, 3))
    got = compare(tmp_path, policy, _oracle(policy), shape, layers=5, sequences=sequences, steps=6, again=5)
    assert got == 12 * sequences


@pytest.mark.parametrize(("layers", "filters"), [(32, [2, 8, 18]), (30, [1, 7, 16]), (2, [0, 1]), (1, [0])])
def test_filter_layers_follow_the_depth(layers, filters):
    indices = OmniKV().open(Geometry(layers, 1, 1, 16, torch.float32), torch.device("cpu"))
    for index in indices:
        index.extend(torch.zeros(1, 5, 16), torch.zeros(1, 1, 5, 16))
    assert [layer for layer, index in enumerate(indices) if index.nbytes] == filters


@pytest.mark.parametrize("layers", [(), (2, 1), (1, 1), (-1, 2)])
def test_filter_layers_out_of_order(layers):
    with pytest.raises(SettingError, match="at least one layer, ascending"):
        OmniKV(filter_layers=layers)


def test_filter_layers_the_model_lacks():
    with pytest.raises(SettingError, match="names layer 4, and the model has 4"):
        OmniKV(filter_layers=(1, 4)).open(Geometry(4, 1, 1, 16, torch.float32), torch.device("cpu"))
