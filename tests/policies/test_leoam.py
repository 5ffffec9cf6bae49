"""LeoAM against an oracle that bounds every chunk from its keys, again at every step."""

from __future__ import annotations

import pytest
import torch

from hillinfer.errors import MemoryBudgetError, SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.policies.leoam import LeoAM
from tests.policies.stepwise import DIM, SHAPES, compare, open_policy


def _bounds(keys, query, chunk):
    """U and Λ over all query heads of the chunk (start, stop)."""
    upper = lower = 0.0
    for head, group in enumerate(query):
        part = keys[head, chunk[0] : chunk[1]]
        for q in group:
            products = torch.stack([q * part.amin(0), q * part.amax(0)])
            upper += float(products.amax(0).sum())
            lower += float(products.amin(0).sum())
    return upper, lower


def _oracle(policy):
    def expected(layer, seen):
        keys, query = seen.keys[layer], seen.query[layer]
        tokens, first = keys.shape[1], layer < policy.first_layers
        size = policy.first_chunk if first else policy.chunk
        wanted = policy.attended(tokens)
        if first:
            wanted = max(wanted, int(policy.first_ratio * tokens))
        if wanted >= tokens:
            return None

        def enough(chunks, rank):
            taken, held = [], 0
            for chunk in sorted(chunks, key=lambda chunk: (rank[chunk], chunk[0]), reverse=True):
                if held < wanted:
                    taken.append(chunk)
                    held += chunk[1] - chunk[0]
            return taken

        chunks = [(start, min(start + size, tokens)) for start in range(0, tokens, size)]
        for _ in range(0 if first else policy.rounds):
            bounds = {chunk: _bounds(keys, query, chunk) for chunk in chunks}
            lower = {chunk: bounds[chunk][1] for chunk in chunks}
            surely = min(lower[chunk] for chunk in enough(chunks, lower))
            size //= 2
            chunks = [
                (start, min(start + size, stop))
                for chunk, stop in chunks
                if bounds[chunk, stop][0] >= surely or stop == tokens
                for start in (chunk, chunk + size)
                if start < stop
            ]
        upper = {chunk: _bounds(keys, query, chunk)[0] for chunk in chunks}
        taken = enough(chunks, upper | {max(chunks): float("inf")})
        return [sorted(t for start, stop in taken for t in range(start, stop))]

    return expected


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sequences", [1, 3])
def test_every_step_selects_like_the_oracle(tmp_path, shape, sequences):
    policy = LeoAM(budget="35%", chunk=32, first_layers=1)
    assert compare(tmp_path, policy, _oracle(policy), shape, sequences=sequences, steps=6, hot="200%") == 12 * sequences


def test_without_halving(tmp_path):
    policy = LeoAM(budget=60, chunk=12, rounds=0, first_layers=0)
    assert compare(tmp_path, policy, _oracle(policy), (2, 2), steps=10, hot="200%") == 20


def test_abstracts_are_taken_from_the_hot_budget(tmp_path):
    geometry = Geometry(4, 2, 2, DIM, torch.float32)
    engine = open_policy(tmp_path, LeoAM(budget="5%", first_layers=1), geometry, hot="25%")
    generator = torch.Generator().manual_seed(0)
    for chunk in (1500, 700, 1, 1):
        for layer in range(4):
            query = torch.randn(2, 2, chunk, DIM, generator=generator)
            keys, values = torch.randn(2, 2, chunk, DIM, generator=generator)
            (engine.exact if chunk > 1 else engine.decode)(layer, 0, query.flatten(0, 1), keys, values, 0.25)
    hot = engine.settled_ledger().tiers.hot
    assert 0.2 * geometry.kv_bytes(2200, 1) < hot.bytes <= hot.peak_bytes <= 0.25 * geometry.kv_bytes(2202, 1)
    engine.close()
    with pytest.raises(MemoryBudgetError, match="bytes of index: the least that works here is"):
        open_policy(tmp_path, LeoAM(budget="5%"), geometry, hot="10%").expect(2000)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"chunk": 100}, "cannot be halved 3 times"),
        ({"chunk": 0, "rounds": 0}, "at least 1 token"),
        ({"first_chunk": 0}, "at least 1 token"),
        ({"first_layers": -1}, "not negative"),
        ({"first_ratio": 0}, "above 0"),
        ({"rounds": -1}, "cannot be halved"),
        ({"budget": 15}, r"leoam needs at least 16 \(a chunk of the smallest size\)"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(SettingError, match=message):
        LeoAM(**settings)
