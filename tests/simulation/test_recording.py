"""Recording: it changes nothing, it counts what the ledger counts, and a file brings it back."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import DocumentError, SettingError
from hillinfer.generation import cache_keyword
from hillinfer.integrations.transformers import NAME, HillInferCache
from hillinfer.policies import H2O, HillInfer, Quest
from hillinfer.simulation.recorded_run import record
from hillinfer.simulation.recording import Recording, load, save
from hillinfer.simulation.trace import LayerStep, Trace
from tests.tiny import tiny

TOKENS, STEPS = 300, 6


def decode(cache, model, ids, recorded):
    model.set_attn_implementation(NAME)
    with torch.inference_mode():
        model(ids[None, :TOKENS], **{cache_keyword(model): cache})
        recording = Recording(cache.engine(1)) if recorded else None
        before = cache.stats()
        logits = [model(ids[TOKENS + step].view(1, 1), **{cache_keyword(model): cache}).logits for step in range(STEPS)]
    if recording is not None:
        recording.close()
    return torch.cat(logits), recording, before, cache.stats()


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.fixture(scope="module")
def ids():
    return torch.randint(5, 299, (TOKENS + STEPS,), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("policy", [HillInfer(alpha=0.1, floor=8), Quest(budget="20%", dense_layers=0)], ids=str)
def test_it_changes_nothing_and_counts_what_the_ledger_counts(policy, model, ids, tmp_path) -> None:
    store = StoreSettings(hot_bytes=Budget.parse("40%"), device_bytes=Budget.parse("64KiB"), cold_dir=tmp_path)
    with HillInferCache(model, policy, store=store) as plain:
        expected, *_ = decode(plain, model, ids, recorded=False)
    with HillInferCache(model, policy, store=store) as cache:
        logits, recording, _, _ = decode(cache, model, ids, recorded=True)
        ledger = cache.engine(1).settled_ledger()
    assert torch.equal(logits, expected)
    trace = recording.trace("tiny")
    works = [work for step in trace.steps for work in step]
    assert [work.tokens for work in works] == [TOKENS + step for step in range(STEPS) for _ in range(2)]
    assert sum(work.hot_rows for work in works) == ledger.selected_hot
    assert sum(work.cold_rows for work in works) == ledger.selected_cold > 0
    assert sum(work.host_scored for work in works) == ledger.host_scored
    assert sum(work.device_scored for work in works) == ledger.device_scored
    for work in works:
        assert work.scored in (0, work.tokens)  # each token is scored once, or none is
        assert 0 < work.cold_requests <= work.cold_rows <= work.read_rows or not work.cold_rows
    positions = trace.positions
    for step, layers in zip(trace.steps, positions.selected, strict=True):
        for layer, selected in enumerate(layers):
            assert len(selected) == step[layer].attended
            assert (np.diff(selected) > 0).all()


def test_a_step_that_attends_to_everything(model, ids, tmp_path) -> None:
    with HillInferCache(model, HillInfer(alpha=1.0), store=StoreSettings(cold_dir=tmp_path)) as cache:
        _, recording, *_ = decode(cache, model, ids, recorded=True)
    for step in recording.trace("tiny").steps:
        assert all(work.attended == work.tokens and work.cold_rows and not work.scored for work in step)
        assert all(0 < work.cold_requests < work.cold_rows / 10 for work in step)  # neighbours come together


def test_what_is_read_ahead_is_counted_for_the_layer_that_it_is_for(model, ids, tmp_path) -> None:
    store = StoreSettings(hot_bytes=Budget.parse("40%"), device_bytes=Budget.parse("64KiB"), cold_dir=tmp_path)
    policy = HillInfer(alpha=0.1, floor=8)
    with HillInferCache(model, policy, store=store) as cache:
        _, asked, *_ = decode(cache, model, ids, recorded=True)
    with HillInferCache(model, policy, store=replace(store, lookahead=1)) as cache:
        _, ahead, *_ = decode(cache, model, ids, recorded=True)
        ledger = cache.engine(1).settled_ledger()
    steps = ahead.trace("tiny").steps
    works = [work for step in steps for work in step]
    assert sum(work.ahead_hits for work in works) == ledger.ahead_hits > 0
    assert sum(work.ahead_rows for work in works) >= ledger.ahead_rows
    assert not any(step[0].ahead_rows for step in steps)  # nothing is before the first layer
    assert all(work.ahead_hits <= work.cold_rows for work in works)
    for before, work in zip((work for step in asked.trace("tiny").steps for work in step), works, strict=True):
        assert before.cold_rows == work.cold_rows
        if not work.ahead_hits:
            assert work.cold_requests == before.cold_requests
            assert work.read_rows == pytest.approx(before.read_rows, rel=0.1)  # without what alignment adds


def test_heads_with_sets_of_their_own(model, ids, tmp_path) -> None:
    with HillInferCache(model, Quest(budget="20%", dense_layers=0), store=StoreSettings(cold_dir=tmp_path)) as cache:
        _, recording, *_ = decode(cache, model, ids, recorded=True)
    for step in recording.trace("tiny").steps:
        assert all(0 < work.each_head <= min(work.attended, 0.2 * work.tokens + 1) for work in step)


def test_what_drops_tokens_is_recorded_by_what_it_keeps(model, ids) -> None:
    with HillInferCache(model, H2O(budget="20%")) as cache:
        _, recording, *_ = decode(cache, model, ids, recorded=True)
    trace = recording.trace("tiny")
    assert trace.policy == "h2o"
    for number, step in enumerate(trace.steps):
        assert {work.tokens for work in step} == {TOKENS + number}
        assert all(0 < work.attended <= 0.2 * work.tokens + 1 and not work.cold_rows for work in step)


def test_a_file_brings_it_back(model, ids, tmp_path) -> None:
    store = StoreSettings(hot_bytes=Budget.parse("40%"), cold_dir=tmp_path)
    trace = record(model, ids, HillInfer(alpha=0.1, floor=8), store, name="tiny", tokens=TOKENS, steps=STEPS)
    path = tmp_path / "a.npz"
    save(trace, path)
    back = load(path)
    assert (back.steps, back.model, back.policy) == ([list(step) for step in trace.steps], "tiny", "hillinfer")
    assert back.settings == json.loads(json.dumps(dict(trace.settings)))
    for name in ("selected", "hot", "host"):
        for ours, theirs in zip(getattr(back.positions, name), getattr(trace.positions, name), strict=True):
            assert all(map(np.array_equal, ours, theirs))
    assert back.positions.pinned == list(trace.positions.pinned)
    bare = Trace("m", "p", [[LayerStep(4)]])
    save(bare, path)
    assert load(path) == bare


def test_files_that_are_none(tmp_path) -> None:
    path = tmp_path / "a.npz"
    with pytest.raises(SettingError, match="cannot be read"):
        load(path)
    path.write_text("no")
    with pytest.raises(SettingError, match="is no trace"):
        load(path)
    np.savez(path, header=np.array('{"kind": "hillinfer-trace", "version": 2}'))
    with pytest.raises(SettingError, match="version 2"):
        load(path)
    np.savez(path, header=np.array('{"kind": "hillinfer-trace", "version": 1}'))
    with pytest.raises(SettingError, match="not a whole trace"):
        load(path)
    np.savez(path, header=np.array("[1]"))
    with pytest.raises(SettingError, match="is no trace"):
        load(path)
    with pytest.raises(SettingError, match="at least one token"):
        Trace("m", "p", [[LayerStep(0)]])


def test_scaling_keeps_shares(model, ids, tmp_path) -> None:
    from hillinfer.simulation import shape

    work = LayerStep(1000, 200, 800, 100, 70, 20, 10, 24, 5, 64, 60, 16, 8, 6)
    trace = Trace("m", "p", [[work, LayerStep(1000)]] * 2)
    other = shape.named("opt-6.7b")
    scaled = trace.scaled(other, sequences=4, tokens=2000, steps=3)
    assert len(scaled.steps) == 3
    assert scaled.layers == other.layers
    first, last = scaled.steps[0][0], scaled.steps[2][31]
    assert first == LayerStep(8000, 1600, 6400, 800, 560, 160, 80, 192, 40, 256, 480, 128, 64, 48)
    assert last == LayerStep(2002 * 4)
    for step in scaled.steps:
        for each in step[:16]:
            assert each.scored == each.tokens
            assert each.newest_rows >= 0
    assert len(fields(LayerStep)) == 14
    with pytest.raises(SettingError):
        Trace("m", "p", [])
    with pytest.raises(DocumentError):
        record(model, ids, None, StoreSettings(cold_dir=tmp_path), name="m", tokens=TOKENS, steps=STEPS + 1)
