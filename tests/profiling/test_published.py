"""The authors' published head analyses: counts, clusters and budget shares come out as they are in the files."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

from hillinfer.errors import ProfileError, SettingError
from hillinfer.profiling import budgets
from hillinfer.profiling.profile_file import read_profile
from hillinfer.profiling.roles import Role

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("*.json"))
COUNTS = {
    "deepseek-r1-distill-llama-8b": {"anchor": 0, "volatile": 5, "pivot": 32, "satellite": 219},
    "llama-3.1-8b-instruct": {"anchor": 10, "volatile": 17, "pivot": 33, "satellite": 196},
}
OTHER_NAMES = {
    "anchor": "Stable_Unique",
    "volatile": "Decaying_Unique",
    "pivot": "Similar_Leader",
    "satellite": "Similar_Member",
}
"""What one of their files calls the same roles."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_counts_clusters_and_shares_are_theirs(path):
    theirs = json.loads(path.read_text())
    profile = read_profile(path)
    assert profile.counts == theirs["meta"]["counts"] == COUNTS[profile.model.name]
    assert (profile.heads, profile.whole) == (256, profile.counts["volatile"] + profile.counts["pivot"])
    numbers = theirs["meta"]["type_map"]
    for layer, matrix, clusters in zip(
        profile.layers, theirs["classification_matrix"], theirs["leader_member_relations"], strict=True
    ):
        assert [numbers[role.value] for role in layer.roles] == matrix
        assert {str(pivot): list(members) for pivot, members in layer.clusters.items()} == clusters
    allocation = np.array(theirs["allocation_matrix"])
    part = budgets.compressed(profile.layers)
    np.testing.assert_array_equal(profile.shares[part], allocation[part])
    assert (allocation[~part] == -1).all()
    assert profile.shares[part].mean() == pytest.approx(1)


def test_half_the_memory_of_llama_is_shared_out_to_the_last_token():
    """ρ = 0.5 of 8192 tokens: F = 50 heads keep all, the 206 others what is left, as measured in tokens."""
    profile = read_profile(DATA / "llama-3.1-8b-instruct_topk1024_th0.5_sim0.5.json")
    base = budgets.base_length(0.5, 8192, profile.heads, profile.whole)
    assert base == (128 - 50) * 8192 // 206
    kept = budgets.lengths(base, profile.shares, profile.layers, 8192)
    assert 0.5 * 256 * 8192 - 2 * 206 <= kept.sum() <= 0.5 * 256 * 8192


def test_the_same_roles_under_their_other_names(tmp_path):
    content = json.loads(FILES[1].read_text())
    for part in ("type_map", "counts"):
        content["meta"][part] = {OTHER_NAMES[role]: number for role, number in content["meta"][part].items()}
    path = tmp_path / "Head_Analysis_llama-3.1-8b-instruct_topk1024_th0.4_sim0.5_step5000.json"
    path.write_text(json.dumps(content))
    renamed, plain = read_profile(path), read_profile(FILES[1])
    assert renamed.layers == plain.layers
    assert renamed.model == plain.model


def _satellite(content):
    clusters = content["leader_member_relations"][0]
    return next(iter(clusters.values()))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda c: c["meta"]["counts"].update(pivot=1), "counts other roles"),
        (lambda c: c["meta"]["type_map"].update(boss=9), "calls a role 'boss'"),
        (lambda c: c["classification_matrix"][3].pop(), "layers × heads"),
        (lambda c: c["classification_matrix"][3].__setitem__(0, 7), "layers × heads"),
        (lambda c: _satellite(c).pop(), "layer 0's clusters and satellites"),
        (lambda c: c["leader_member_relations"][0].update({"3": []}), "layer 0's clusters and pivots"),
        (lambda c: c.pop("allocation_matrix"), "not a whole profile"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(tmp_path, spoil, message):
    content = copy.deepcopy(json.loads(FILES[0].read_text()))
    spoil(content)
    path = tmp_path / "spoilt.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ProfileError, match=message):
        read_profile(path)


def test_imported_roles_cannot_be_judged_anew():
    profile = read_profile(FILES[0])
    assert profile.judged_by(None, None) is profile
    with pytest.raises(SettingError, match="imported"):
        profile.judged_by(0.4, None)
    assert profile.layers[0].roles[0] is Role.pivot
