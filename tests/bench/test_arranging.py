"""The rule of arrangement: logits add up, every captured head is used before any is used again."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.bench.arranging import Arranged, Arrangement, Shape
from hillinfer.errors import SettingError
from tests.bench.made_up import made_up


def logits(stream: Arranged) -> torch.Tensor:
    """float32 [H, G, n, n]"""
    return torch.einsum("hgtd,hnd->hgtn", stream.query.float(), stream.keys.float())


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.sampled_from([8, 16, 32]), st.integers(0, 3))
def test_logits_add_up(layers: int, kv_heads: int, group: int, wanted: int, number: int) -> None:
    """Of all pieces of a head, or of all heads side by side."""
    capture = made_up(layers=layers, kv_heads=kv_heads, group=group, tokens=5)
    shape = Shape("wanted", 2 * 3, 1, wanted, 4)
    stream = Arrangement(capture, shape).stream(number)
    captured = [
        torch.einsum("gtd,nd->gtn", *(torch.tensor(part[head]).float() for part in (layer.query, layer.keys)))
        for layer in capture.layers
        for head in range(kv_heads)
    ]
    found = logits(stream)[:, 0]
    for head in range(shape.kv_heads):
        place = number * shape.kv_heads + head
        if wanted == 16:
            round_, which = divmod(place, len(captured))
            expected = captured[which][round_ % group]
            torch.testing.assert_close(found[head], expected)
        elif wanted == 32:
            expected = sum(
                captured[which % len(captured)][which // len(captured) % group] for which in (2 * place, 2 * place + 1)
            )
            torch.testing.assert_close(found[head], expected)
        elif place % 2 == 0 and head + 1 < shape.kv_heads:
            round_, piece = divmod(place, 2 * len(captured))
            expected = captured[piece // 2][round_ % group]
            torch.testing.assert_close(found[head] + found[head + 1], expected)


def test_a_cut_keeps_rotary_pairs() -> None:
    capture = made_up(layers=1, kv_heads=1, tokens=3)
    keys = Arrangement(capture, Shape("halves", 2, 1, 8, 1)).stream(0).keys
    whole = torch.tensor(capture.layers[0].keys[0])
    assert torch.equal(keys[0], whole[:, [0, 2, 4, 6, 8, 10, 12, 14]])
    assert torch.equal(keys[1], whole[:, [1, 3, 5, 7, 9, 11, 13, 15]])


def test_queries_of_a_group_are_the_captured_ones_in_turn() -> None:
    capture = made_up(layers=1, kv_heads=2, group=3, tokens=3)
    stream = Arrangement(capture, Shape("pairs", 1, 4, 32, 1)).stream(0)
    queries = [[torch.tensor(capture.layers[0].query[head, g]) for g in range(3)] for head in range(2)]
    for i, (first, second) in enumerate([(0, 0), (1, 1), (2, 2), (0, 1)]):
        assert torch.equal(stream.query[0, i], torch.cat([queries[0][first], queries[1][second]], 1))


def test_streams_repeat_only_when_all_heads_were_used() -> None:
    capture = made_up(layers=2, kv_heads=2, group=2, tokens=3)
    arrangement = Arrangement(capture, Shape("same", 2, 1, 16, 1))
    assert arrangement.distinct == 8
    seen = [
        (stream.query[h].sum(), stream.keys[h].sum())
        for i in range(5)
        for h in range(2)
        for stream in [arrangement.stream(i)]
    ]
    assert len(set(seen[:8])) == 8
    assert seen[8:] == seen[:2]


def test_heads_that_do_not_go_together_are_an_error() -> None:
    with pytest.raises(SettingError, match="heads of 24"):
        Arrangement(made_up(tokens=2), Shape("odd", 2, 1, 24, 1))
