"""Reading ahead by a guess: whatever is guessed, nothing changes but when rows are read."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.config import Budget, StoreSettings
from hillinfer.csd.contract import Stream
from hillinfer.errors import CorruptRecordError, SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.policies import HillInfer

GEOMETRY = Geometry(2, 2, 2, 16, torch.float32)
PROMPT, STEPS = 450, 20


def _run(folder, guess, *, scope="token", **given):
    """Outputs of every step, and the engine, still open; ``guess`` makes of a layer's query what is foretold of it."""
    store = StoreSettings(cold_dir=folder, hot_bytes=Budget.parse("20%"), **given)
    policy = HillInfer(alpha=0.1, floor=8, scope=scope)
    engine = TieredEngine(GEOMETRY, policy, store, sequences=1, max_tokens=1 << 14, device=torch.device("cpu"))
    generator, outs = torch.Generator().manual_seed(0), []
    for step in range(STEPS + 1):
        count = 1 if step else PROMPT
        query = torch.randn(4, count, 16, generator=generator) * 2
        keys, values = (torch.randn(2, count, 16, generator=generator) for _ in range(2))
        for layer in range(GEOMETRY.layers):
            guessed = guess(step, layer, query) if step else None
            if guessed is not None:
                engine.foretell(layer, 0, guessed, 0.25)
            run = engine.decode if step else engine.exact
            outs.append(run(layer, 0, query, keys, values, 0.25))
    return outs, engine


def _counts(engine):
    ledger = engine.settled_ledger()
    return (
        ledger.selected_hot,
        ledger.selected_cold,
        ledger.cold_read_bytes,
        ledger.moved_rows,
        ledger.host_scored,
        ledger.device_scored,
    )


@pytest.fixture(scope="module", params=["token", "head"])
def plain(request, tmp_path_factory):
    outs, engine = _run(tmp_path_factory.mktemp("cold"), lambda *_: None, scope=request.param)
    counts = _counts(engine)
    engine.close()
    return request.param, outs, counts


@settings(max_examples=6, deadline=None)
@given(st.floats(0, 3), st.integers(0, 1000), st.booleans())
def test_any_guess_leaves_every_bit_and_every_count(tmp_path_factory, plain, noise, seed, apart):
    """Also where both sides score apart, and where not every step is foretold."""
    scope, expected, counts = plain
    generator = torch.Generator().manual_seed(seed)

    def guess(step, layer, query):
        if (step + layer + seed) % 5 == 0:
            return None
        return query + noise * torch.randn(query.shape, generator=generator)

    balance = 0.3 if apart else "off"
    outs, engine = _run(tmp_path_factory.mktemp("cold"), guess, scope=scope, balance=balance)
    assert all(torch.equal(a, b) for a, b in zip(outs, expected, strict=True))
    assert apart or _counts(engine) == counts
    assert engine.ledger.ahead_rows > 0
    engine.close()


@pytest.mark.parametrize("device", ["software", "native"])
def test_a_right_guess_has_every_row_on_its_way(tmp_path, device):
    _, engine = _run(tmp_path, lambda _step, _layer, query: query, device=device)
    ledger = engine.settled_ledger()
    assert ledger.lookahead_hit_rate == 1
    assert ledger.ahead_rows == ledger.ahead_hits == ledger.selected_cold > 0
    engine.close()


def test_a_guess_that_cannot_be_read_is_no_guess(tmp_path):
    """The only damaged rows are ones that no step asks for."""
    _, engine = _run(tmp_path, lambda *_: None)
    expected, other = (_run(tmp_path, lambda *_: None) for _ in range(2))
    stream = other[1]._works[Stream(0, 0)].stream
    other[1].csd.flush()
    cold = (stream.hot_pool.slot_of[: stream.stored] < 0).nonzero()[0]
    with open(f"/proc/self/fd/{other[1].csd.rows.logs[0].file.fd}", "r+b", buffering=0) as file:
        file.seek(int(cold[0]) * GEOMETRY.row_bytes)
        file.write(b"\xff" * GEOMETRY.row_bytes)
    stream.stage(cold)
    want = cold[1:40:2]
    there = expected[1]._works[Stream(0, 0)].stream.bring(want).wait()
    assert torch.equal(stream.bring(want).wait(), there)
    stream.stage(cold)
    with pytest.raises(CorruptRecordError):
        stream.bring(cold[:2]).wait()
    for each in (engine, expected[1], other[1]):
        each.close()


def test_rows_are_told_as_they_come(tmp_path):
    _, engine = _run(tmp_path, lambda *_: None)
    stream = engine._works[Stream(1, 0)].stream
    cold = (stream.hot_pool.slot_of[: stream.stored] < 0).nonzero()[0]
    stream.stage(cold[::2])
    want = cold[:51]
    fetch = stream.bring(want)
    ticket, seen = fetch.located._ticket, []
    while len(ranks := ticket.ready()):
        seen.extend(ranks.tolist())
    assert sorted(seen) == list(range(51))
    assert torch.equal(fetch.wait(), stream.bring(want).wait())
    engine.close()


@pytest.mark.parametrize("lookahead", [-1, 2])
def test_how_far_one_can_look_is_told(lookahead):
    with pytest.raises(SettingError, match="1 reads ahead for the next layer, 0 does not"):
        StoreSettings(lookahead=lookahead)
