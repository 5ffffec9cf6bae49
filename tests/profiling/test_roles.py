"""Star clusters against a plain reading of their definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from hillinfer.profiling.roles import Role, layer_roles, star_clusters
from hillinfer.profiling.similarity import pairwise, similarity, typical


def _clusters(overlap, threshold):
    """By sets and sorting."""
    heads = range(len(overlap))
    free, found = set(heads), {}
    while True:
        near = {h: {o for o in free if o != h and overlap[h][o] >= threshold} for h in free}
        best = sorted(free, key=lambda h: (-len(near[h]), h))
        if not best or not near[best[0]]:
            return found
        found[best[0]] = tuple(sorted(near[best[0]]))
        free -= {best[0], *near[best[0]]}


@st.composite
def _overlaps(draw):
    heads = draw(st.integers(1, 9))
    half = draw(arrays.arrays(np.float32, (heads, heads), elements=st.floats(0, 1, width=32)))
    overlap = np.maximum(half, half.T)
    np.fill_diagonal(overlap, 1)
    return overlap


@settings(deadline=None)
@given(_overlaps(), st.sampled_from([0.1, 0.5, 0.9]))
def test_clusters_are_those_of_the_definition(overlap, threshold):
    clusters = star_clusters(overlap, threshold)
    assert clusters == _clusters(overlap.tolist(), np.float32(threshold))
    assert list(clusters) == sorted(clusters)


def test_of_equal_degrees_the_lowest_head_is_the_pivot():
    ring = np.eye(4, dtype=np.float32)
    for head in range(4):
        ring[head, (head + 1) % 4] = ring[(head + 1) % 4, head] = 0.7
    assert star_clusters(ring, 0.5) == {0: (1, 3)}  # and head 2 is left alone
    roles = layer_roles(np.array([0.9, 0.9, 0.5, 0.9], np.float32), ring, 0.5, 0.5)
    assert roles.roles == (Role.pivot, Role.satellite, Role.anchor, Role.satellite)
    assert layer_roles(np.zeros(4, np.float32), ring, 0.5, 0.5).roles[2] is Role.volatile
    assert layer_roles(np.zeros(4, np.float32), ring, 0.5, 0.8).clusters == {}


def test_similarity_is_the_median_over_steps_of_the_best_other_head():
    import torch

    generator = torch.Generator().manual_seed(1)
    steps = [torch.rand(3, 40, generator=generator) < 0.4 for _ in range(5)]
    overlaps = np.array([pairwise(sets) for sets in steps])
    best = []
    for sets in steps:
        members = [set(row.nonzero()[:, 0].tolist()) for row in sets]
        best.append([max(len(a & b) / len(a) for b in members if b is not a) for a in members])
    np.testing.assert_allclose(similarity(overlaps), np.median(best, 0), rtol=1e-6)
    np.testing.assert_allclose(typical(overlaps), np.median(overlaps, 0))
    np.testing.assert_array_equal(typical(overlaps, step=-1), overlaps[-1])  # the authors' published code
