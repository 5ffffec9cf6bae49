"""What holds for every policy that keeps everything and picks by an index, whichever the index is."""

from __future__ import annotations

import pytest
import torch

from hillinfer import HillInferCache, policies
from hillinfer.config import Budget
from hillinfer.kv.geometry import Geometry
from hillinfer.policies import Full, InfiniGen, LeoAM, OmniKV, Quest, ShadowKV
from tests.integrations.test_hillinfer_cache import _generate
from tests.policies.stepwise import DIM, SCALING, open_policy, random_tokens
from tests.tiny import random_ids, tiny

CASES = [
    Quest(budget="30%", page=8, dense_layers=1),
    LeoAM(budget="30%", chunk=32, first_layers=1),
    InfiniGen(budget="30%", dense_layers=1, skew_tokens=70),
    ShadowKV(budget="40%", recent=16, outliers=4),
    OmniKV(budget="30%", filter_layers=(0,)),
]
each = pytest.mark.parametrize("policy", CASES, ids=lambda policy: policy.name)


def _run(tmp_path, policy, *, chunks=(250,), steps=60, layers=2, foretold=False, **settings):
    """Sets and outputs of every step, and the engine, still open. The tokens are the same in any chunks."""
    geometry = Geometry(layers, 2, 2, DIM, torch.float32)
    engine = open_policy(tmp_path, policy, geometry, **({"hot": "100%"} | settings))
    sets, outs = [], []
    engine.witness = lambda *told: sets.append([each.tolist() for each in told[2]])
    generator = torch.Generator().manual_seed(0)
    prompt = [random_tokens(geometry, sum(chunks), generator) for _ in range(layers)]
    start = 0
    for chunk in chunks:
        for layer, (query, keys, values) in enumerate(prompt):
            part = slice(start, start + chunk)
            engine.exact(layer, 0, query[:, :, part].flatten(0, 1), keys[:, part], values[:, part], SCALING)
        start += chunk
    for _ in range(steps):
        step = [random_tokens(geometry, 1, generator) for _ in range(layers)]
        for layer, (query, keys, values) in enumerate(step):
            if foretold and layer + 1 < layers:
                engine.foretell(layer + 1, 0, step[layer + 1][0].flatten(0, 1), SCALING)
            outs.append(engine.decode(layer, 0, query.flatten(0, 1), keys, values, SCALING))
    return sets, outs, engine


@each
def test_chunks_of_any_size_give_the_same_index(tmp_path, policy):
    runs = [
        _run(tmp_path, policy, chunks=chunks, steps=10)
        for chunks in [(250,), (64, 64, 122), (1, 3, 199, 7, 40), (33,) * 7 + (19,)]
    ]
    for sets, outs, engine in runs:
        assert sets == runs[0][0]
        torch.testing.assert_close(outs, runs[0][1])
        engine.close()


@each
def test_what_is_selected_does_not_depend_on_where_it_lies(tmp_path, policy):
    """Not one bit of any output changes with the budgets of the tiers."""
    tile = 64 * (Geometry(2, 2, 2, DIM, torch.float32).row_bytes + 2 * DIM)
    budgets = [("85%", None), ("85%", 2 * tile), ("300%", 10 * tile)]
    runs = [
        _run(tmp_path, policy, chunks=(700,), hot=hot, device_bytes=device and Budget.parse(device))
        for hot, device in budgets
    ]
    for sets, outs, engine in runs:
        assert sets == runs[0][0]
        assert all(torch.equal(a, b) for a, b in zip(outs, runs[0][1], strict=True))
        engine.close()
    assert runs[0][2].ledger.cold_read_bytes > 0


@each
def test_nothing_is_cast_or_written_to_be_scored(tmp_path, policy):
    _, _, engine = _run(tmp_path, policy, steps=3)
    counters, tiers = engine.csd.counters, engine.settled_ledger().tiers
    assert counters.scoring_bytes == counters.scanned_tokens == 0
    assert counters.stored_bytes == tiers.cold.bytes > 0
    engine.close()


@pytest.mark.parametrize("policy", [CASES[0], CASES[2]], ids=lambda policy: policy.name)
def test_a_query_that_is_foretold_right_changes_nothing_but_the_time_of_reading(tmp_path, policy):
    sets, outs, engine = _run(tmp_path, policy)
    engine.close()
    again, same, engine = _run(tmp_path, policy, foretold=True)
    assert again == sets
    assert all(torch.equal(a, b) for a, b in zip(outs, same, strict=True))
    engine.close()


def test_rows_are_read_before_the_step_they_are_foretold_for(tmp_path):
    policy = InfiniGen(budget="30%", dense_layers=1)
    geometry = Geometry(2, 2, 2, DIM, torch.float32)
    engine = open_policy(tmp_path, policy, geometry, hot="35%")
    generator = torch.Generator().manual_seed(0)
    for layer in range(2):
        query, keys, values = random_tokens(geometry, 600, generator)
        engine.exact(layer, 0, query.flatten(0, 1), keys, values, SCALING)
    events = []
    read, decode = engine.csd.read, engine.decode

    def noted_read(stream, positions, out):
        events.append(("read", stream.layer))
        return read(stream, positions, out)

    def noted_decode(layer, *args):
        events.append(("step", layer))
        return decode(layer, *args)

    engine.csd.read = noted_read
    for _ in range(3):
        events.clear()
        first, second = (random_tokens(geometry, 1, generator) for _ in range(2))
        engine.foretell(1, 0, second[0].flatten(0, 1), SCALING)
        for layer, (query, keys, values) in enumerate((first, second)):
            noted_decode(layer, 0, query.flatten(0, 1), keys, values, SCALING)
        assert events.index(("read", 1)) < events.index(("step", 0))
        assert ("read", 1) not in events[events.index(("step", 1)) :]
    engine.close()


@pytest.mark.parametrize("name", ["full", "quest", "leoam", "infinigen", "shadowkv", "omnikv"])
def test_a_budget_of_everything_attends_to_everything(tmp_path, name):
    policy = policies.create(name, **({} if name == "full" else {"budget": "100%"}))
    sets, outs, engine = _run(tmp_path, policy, chunks=(100, 100), steps=10, hot="200%")
    engine.close()
    assert sets == [[list(range(200 + step))] for step in range(10) for _ in range(2)]
    _, full, engine = _run(tmp_path, Full(), chunks=(200,), steps=10)
    engine.close()
    torch.testing.assert_close(outs, full)


def test_layers_attended_whole_have_the_hot_pool_first(tmp_path):
    _, _, engine = _run(tmp_path, Quest(budget="10%", dense_layers=1), chunks=(640,), steps=70, layers=4, hot="60%")
    assert engine.settled_ledger().tiers.hot.peak_bytes <= 0.6 * engine.geometry.kv_bytes(710, 1)
    pools = [len(work.stream.hot_pool) for work in engine._works.values()]
    assert pools[0] == engine._works[0, 0].stream.stored == 640  # nothing of it is read
    assert max(pools[1:]) <= (0.6 * 4 * 710 - 640) / 3
    engine.close()


def test_rows_of_a_layer_attended_whole_are_counted_as_read(tmp_path):
    _, _, engine = _run(tmp_path, Quest(budget="40%", dense_layers=1), chunks=(640,), steps=5, layers=1, hot="41%")
    ledger = engine.settled_ledger()
    assert ledger.selected_hot + ledger.selected_cold == 5 * 640
    assert ledger.cold_read_bytes == ledger.selected_cold * engine.geometry.row_bytes > 0
    engine.close()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@each
def test_half_precision(tmp_path, policy, dtype):
    geometry = Geometry(2, 2, 2, DIM, dtype)
    engine = open_policy(tmp_path, policy, geometry, hot="100%")
    generator = torch.Generator().manual_seed(0)
    for count in (200, 1, 1, 1):
        for layer in range(2):
            query, keys, values = (x.to(dtype) for x in random_tokens(geometry, count, generator, whole=False))
            run = engine.decode if count == 1 else engine.exact
            out = run(layer, 0, query.flatten(0, 1), keys, values, SCALING)
            assert out.dtype == dtype
            assert torch.isfinite(out).all()
    engine.close()


@each
def test_a_padded_batch_equals_its_members_and_reset_leaves_nothing(tmp_path, policy):
    model = tiny("llama")
    length, lengths = 130, [130, 61, 112]
    ids = random_ids(length, batch=3)
    mask = torch.tensor([[0] * (length - n) + [1] * n for n in lengths])
    with HillInferCache(model, policy, hot_bytes="100%", cold_dir=tmp_path) as cache:
        together, logits = _generate(model, ids, cache, mask, new=8)
        cache.reset()
        for row, n in enumerate(lengths):
            alone, own = _generate(model, ids[row : row + 1, length - n :], cache, new=8)
            assert torch.equal(alone[0, n:], together[row, length:])
            torch.testing.assert_close(own[0], logits[row], atol=2e-4, rtol=0)
            cache.reset()
            assert cache.stats().tiers.device.bytes == 0
        again, _ = _generate(model, ids, cache, mask, new=8)
        assert torch.equal(again, together)
