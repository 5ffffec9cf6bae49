"""Exact attention in pieces against one plain softmax."""

import math

import pytest
import torch

from hillinfer.kv import attention
from hillinfer.kv.attention import attend, merge

SHAPES = [(3, 3, 64), (4, 1, 64), (1, 4, 256), (2, 5, 80)]


def _softmax(query, keys, values, scaling, allowed):
    logits = torch.einsum("hgtd,hnd->hgtn", query, keys) * scaling
    logits = logits.masked_fill(~allowed, -math.inf)
    return torch.einsum("hgtn,hnd->hgtd", logits.softmax(-1), values), logits.logsumexp(-1)


@pytest.fixture(params=["flash", "dense"])
def way(request):
    """Both implementations: the CPU kernel, and the plain one that serves other devices."""
    if request.param == "dense":

        def dense(query, keys, values, scaling, *, causal=False, mask=None):
            bias = None if mask is None else torch.zeros(mask.shape).masked_fill(~mask, -math.inf)[:, None, None]
            return attention._attend_dense(query, keys, values, scaling, causal, bias)

        return dense
    return attend


@pytest.mark.parametrize("shape", SHAPES)
def test_causal_attention(shape, way):
    heads, group, dim = shape
    query, keys, values = torch.randn(heads, group, 33, dim), torch.randn(heads, 33, dim), torch.randn(heads, 33, dim)
    out, lse = way(query, keys, values, 0.1, causal=True)
    expected = _softmax(query, keys, values, 0.1, torch.ones(33, 33, dtype=torch.bool).tril())
    torch.testing.assert_close((out, lse), expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_pieces_merge_into_the_whole(shape, way):
    heads, group, dim = shape
    query, keys, values = torch.randn(heads, group, 5, dim), torch.randn(heads, 100, dim), torch.randn(heads, 100, dim)
    parts = [way(query, keys[:, a:b], values[:, a:b], 0.1) for a, b in ((0, 1), (1, 40), (40, 100))]
    expected = _softmax(query, keys, values, 0.1, torch.ones(100, dtype=torch.bool))
    torch.testing.assert_close(merge(parts), expected)
    torch.testing.assert_close(merge([merge(parts[:2]), parts[2]]), expected)


@pytest.mark.parametrize("shape", SHAPES)
def test_each_head_sees_its_own_keys(shape, way):
    heads, group, dim = shape
    query, keys, values = torch.randn(heads, group, 1, dim), torch.randn(heads, 50, dim), torch.randn(heads, 50, dim)
    mask = torch.rand(heads, 50) < 0.4
    mask[:, -1] = True
    expected = _softmax(query, keys, values, 0.1, mask[:, None, None, :])
    torch.testing.assert_close(way(query, keys, values, 0.1, mask=mask), expected)
