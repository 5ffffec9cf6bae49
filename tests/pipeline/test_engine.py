"""The engine against a plain, slow oracle: the sets it selects, what it attends to, and the bytes it holds."""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from hillinfer.config import Budget, StoreSettings
from hillinfer.csd.contract import Stream
from hillinfer.csd.software.scorer import SoftwareScorer
from hillinfer.errors import CorruptRecordError, SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.keys import cast_keys
from hillinfer.kv.query import quantise_query
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.pipeline.evaluate import Evaluator
from hillinfer.policies import HillInfer
from tb import qk_model

SCALING = 0.25


@dataclass
class Oracle:
    """One layer and sequence in plain torch and the kernel's NumPy model: nothing is ever moved or cached twice."""

    policy: HillInfer
    keys: torch.Tensor
    values: torch.Tensor
    normaliser: np.ndarray | None = None

    def attend(self, query, allowed):
        heads, group = query.shape[:2]
        logits = torch.einsum("hgtd,hnd->hgtn", query, self.keys) * SCALING
        logits = logits.masked_fill(~allowed, -torch.inf)
        self.normaliser_of = logits.logsumexp(-1)[:, :, -1].numpy()
        out = torch.einsum("hgtn,hnd->hgtd", logits.softmax(-1), self.values)
        return out.reshape(heads * group, -1, query.shape[-1])

    def add(self, keys, values):
        self.keys, self.values = torch.cat([self.keys, keys], 1), torch.cat([self.values, values], 1)

    def prefill(self, query, keys, values):
        before = self.keys.shape[1]
        self.add(keys, values)
        length, total = query.shape[2], self.keys.shape[1]
        allowed = torch.arange(total)[None] <= torch.arange(before, before + length)[:, None]
        out = self.attend(query, allowed)
        self.normaliser = self.normaliser_of
        return out

    def decode(self, query, keys, values, cold=()):
        """``cold``: which tokens the policy would rather not have."""
        heads, group, _, _ = query.shape
        cast = cast_keys(self.keys)
        n = self.keys.shape[1]
        normalised = self.policy.reduce == "max-lse"
        quantised = quantise_query(
            query[:, :, 0].numpy(),
            SCALING,
            self.normaliser if normalised else None,
            cast.exponents.min(0),
            "max" if normalised else "sum",
        )
        sets = []
        for chosen in [range(heads)] if self.policy.scope == "token" else [[h] for h in range(heads)]:
            enabled = np.zeros((heads, group), bool)
            enabled[list(chosen)] = True
            scores = qk_model.scores(
                quantised.q8,
                cast.integers,
                cast.exponents,
                quantised.m,
                quantised.r,
                quantised.o,
                enabled,
                quantised.reduce,
            )
            less = dict.fromkeys(cold, self.policy.handicap)
            order = sorted(range(n), key=lambda i: (max(scores[i] - less.get(i, 0), -32768), i), reverse=True)
            sets.append(sorted(order[: self.policy.attended(n)]))
        allowed = torch.zeros(heads, 1, 1, n + 1, dtype=torch.bool)
        for head in range(heads):
            allowed[head, ..., [*sets[min(head, len(sets) - 1)], n]] = True
        self.add(keys, values)
        out = self.attend(query, allowed)
        self.normaliser = np.float32(0.9) * self.normaliser + np.float32(0.1) * self.normaliser_of
        return out, sets


def _geometry(kv_heads, group, layers=1, dtype=torch.float32):
    return Geometry(layers, kv_heads, group, 16, dtype)


def _engine(tmp_path, geometry, policy, *, hot="20%", device_bytes=None, sequences=1, trace=False, balance="auto"):
    settings = StoreSettings(
        hot_bytes=Budget.parse(hot),
        device_bytes=device_bytes and Budget.parse(device_bytes),
        cold_dir=tmp_path,
        trace=trace,
        balance=balance,
    )
    return TieredEngine(geometry, policy, settings, sequences=sequences, max_tokens=1 << 14, device=torch.device("cpu"))


def _tokens(geometry, count, generator):
    """A query [H, G, n, d], keys and values; keys drift slowly, so that importance has some locality."""
    shape = (geometry.kv_heads, geometry.group, count, geometry.head_dim)
    query = torch.randn(shape, generator=generator) * 2
    keys = torch.randn(shape[0], count, shape[3], generator=generator)
    values = torch.randn(shape[0], count, shape[3], generator=generator)
    return query, keys, values


def _tile_bytes(geometry):
    """Bytes of a tile in the device tier."""
    return 64 * (geometry.row_bytes + geometry.score_key_bytes)


def _flat(query):
    return query.reshape(-1, *query.shape[2:])


@pytest.mark.parametrize(("kv_heads", "group"), [(4, 1), (2, 3), (1, 4)])
@pytest.mark.parametrize(
    ("reduce", "cold_margin"), [("max-lse", 0), ("max-lse", None), ("max-lse", 100), ("sum", None)]
)
@pytest.mark.parametrize("scope", ["token", "head"])
def test_every_step_selects_and_attends_like_the_oracle(tmp_path, kv_heads, group, reduce, cold_margin, scope):
    geometry = _geometry(kv_heads, group)
    policy = HillInfer(alpha=0.15, floor=8, reduce=reduce, cold_margin=cold_margin, scope=scope)
    generator = torch.Generator().manual_seed(kv_heads)
    oracle = Oracle(policy, torch.empty(kv_heads, 0, 16), torch.empty(kv_heads, 0, 16))
    engine = _engine(tmp_path, geometry, policy, device_bytes=_tile_bytes(geometry))
    selected = []
    engine.witness = lambda layer, sequence, sets: selected.append([each.tolist() for each in sets])  # noqa: ARG005
    for chunk in (300, 1, 77):
        query, keys, values = _tokens(geometry, chunk, generator)
        out = engine.exact(0, 0, _flat(query), keys, values, SCALING)
        torch.testing.assert_close(out, oracle.prefill(query, keys, values))
    work = engine._works[Stream(0, 0)]
    for step in range(200):
        query, keys, values = _tokens(geometry, 1, generator)
        engine.settled_ledger()
        engine._recall(work, SCALING)  # what the first step does before it selects
        cold = np.flatnonzero(work.stream.hot_pool.slot_of < 0)
        out = engine.decode(0, 0, _flat(query), keys, values, SCALING)
        expected, sets = oracle.decode(query, keys, values, cold)
        assert selected[-1] == sets, f"step {step}"
        torch.testing.assert_close(out, expected)
    assert engine.ledger.device_scored > engine.ledger.host_scored > 0
    engine.close()


def _run(tmp_path, geometry, policy, *, prompt=500, steps=150, seed=0, sequences=1, **settings):
    """Outputs of a run in which every sequence has its own tokens, and the engine, still open."""
    engine = _engine(tmp_path, geometry, policy, sequences=sequences, **settings)
    outs = []
    generators = [torch.Generator().manual_seed(seed + s) for s in range(sequences)]
    for step in range(steps + 1):
        for sequence, generator in enumerate(generators):
            query, keys, values = _tokens(geometry, 1 if step else prompt, generator)
            run = engine.decode if step else engine.exact
            outs.append([run(layer, sequence, _flat(query), keys, values, SCALING) for layer in range(geometry.layers)])
    return outs, engine


@pytest.mark.parametrize("scope", ["token", "head"])
def test_what_is_selected_does_not_depend_on_where_it_lies(tmp_path, scope):
    """Not one bit of any output changes with the budgets of the tiers."""
    geometry = _geometry(2, 2)
    policy = HillInfer(alpha=0.1, floor=8, cold_margin=0, scope=scope)
    tile = _tile_bytes(geometry)
    runs = [
        _run(tmp_path, geometry, policy, hot=hot, device_bytes=device)
        for hot, device in [("12%", None), ("20%", tile), ("20%", 5 * tile), ("100%", None), ("200%", None)]
    ]
    for outs, engine in runs:
        for a, b in zip(runs[0][0], outs, strict=True):
            assert torch.equal(a[0], b[0])
        engine.close()


def test_everything_in_dram_reads_nothing(tmp_path):
    outs, engine = _run(tmp_path, _geometry(2, 2), HillInfer(alpha=0.1), hot="200%")
    assert engine.settled_ledger().hot_hit_rate == 1
    assert engine.ledger.cold_read_bytes == 0
    assert len(outs) == 151
    engine.close()


@pytest.mark.parametrize("hot", ["10%", "20%", "60%", 40_000])
@pytest.mark.parametrize("device", [None, 3])
def test_budgets_are_never_exceeded(tmp_path, hot, device):
    """Measured bytes of both tiers, after every step and with what runs behind it done."""
    geometry = _geometry(2, 2, layers=2)
    streams = geometry.layers * 2
    budget = None if device is None else device * _tile_bytes(geometry) * streams
    engine = _engine(tmp_path, geometry, HillInfer(alpha=0.1, floor=8), hot=hot, device_bytes=budget, sequences=2)
    generator = torch.Generator().manual_seed(0)
    length = 0
    for chunk in [100, 1, 63, 200, *[1] * 200, 130, *[1] * 100]:
        length += chunk
        for layer in range(2):
            for sequence in range(2):
                query, keys, values = _tokens(geometry, chunk, generator)
                run = engine.decode if chunk == 1 else engine.exact
                run(layer, sequence, _flat(query), keys, values, SCALING)
        whole = geometry.kv_bytes(length, 2)
        tiers = engine.settled_ledger().tiers
        works = [work.stream for work in engine._works.values()]
        assert tiers.hot.bytes == sum(work.hot_pool.nbytes + work.host_tiles.nbytes for work in works)
        assert tiers.device.bytes == sum(work.device_tier.nbytes for work in works)
        assert tiers.hot.bytes <= Budget.parse(hot).resolve(whole)
        assert tiers.device.bytes <= (budget or streams * 2 * _tile_bytes(geometry))
        newest = sum(len(work.device_tier) for work in works) * geometry.row_bytes
        assert tiers.cold.bytes + newest == whole  # nothing is thrown away
    assert tiers.hot.peak_bytes >= 0.85 * min(Budget.parse(hot).resolve(whole), tiers.cold.bytes)
    engine.close()


def test_a_batch_equals_its_members(tmp_path):
    geometry = _geometry(2, 2, layers=2)
    together, engine = _run(tmp_path, geometry, HillInfer(alpha=0.1, floor=8), sequences=3, steps=80)
    engine.close()
    for sequence in range(3):
        alone, engine = _run(tmp_path, geometry, HillInfer(alpha=0.1, floor=8), seed=sequence, steps=80)
        engine.close()
        for a, b in zip(alone, together[sequence::3], strict=True):
            assert all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def _decode_batch(engine, geometry, generators):
    """A step of every sequence in every layer, as a model takes it."""
    given = [(s, _tokens(geometry, 1, generator)) for s, generator in enumerate(generators)]
    batch = [(s, _flat(query), keys, values) for s, (query, keys, values) in given]
    return [list(engine.decode_batch(layer, batch, SCALING)) for layer in range(geometry.layers)]


@pytest.mark.parametrize(
    "policy", [HillInfer(alpha=0.1, floor=8), HillInfer(alpha=0.1, scope="head"), HillInfer(alpha=1)]
)
@pytest.mark.parametrize("balance", ["auto", "0.5"])
def test_steps_of_a_batch_that_overlap_equal_those_one_by_one(tmp_path, policy, balance):
    geometry = _geometry(2, 2, layers=2)
    alone, engine = _run(tmp_path, geometry, policy, sequences=3, steps=60, hot="40%", balance=balance)
    counted = engine.settled_ledger()
    engine.close()
    _, engine = _run(tmp_path, geometry, policy, sequences=3, steps=0, hot="40%", balance=balance)
    generators = [torch.Generator().manual_seed(s) for s in range(3)]
    for generator in generators:
        _tokens(geometry, 500, generator)
    for step in range(60):
        outs = _decode_batch(engine, geometry, generators)
        for sequence in range(3):
            expected = alone[(step + 1) * 3 + sequence]
            assert all(torch.equal(outs[layer][sequence], expected[layer]) for layer in range(2)), (step, sequence)
    assert engine.settled_ledger() == counted
    engine.close()


def test_the_next_sequences_rows_are_asked_for_before_the_last_ones_are_waited_for(tmp_path):
    geometry = _geometry(2, 2, layers=2)
    _, engine = _run(tmp_path, geometry, HillInfer(alpha=0.5, floor=8), sequences=3, steps=2, hot="60%")
    calls, read = [], engine.csd.read

    def noted(stream, positions, out):
        ticket = read(stream, positions, out)
        calls.append(("asked", *stream))
        wait = ticket.wait
        ticket.wait = lambda: (calls.append(("waited", *stream)), wait())[1]
        return ticket

    engine.csd.read = noted
    _decode_batch(engine, geometry, [torch.Generator().manual_seed(s) for s in range(3)])
    order = [("asked", 0), ("asked", 1), ("waited", 0), ("asked", 2), ("waited", 1), ("waited", 2)]
    assert calls == [(what, layer, sequence) for layer in range(2) for what, sequence in order]
    engine.close()


def test_alpha_one_is_exact_attention(tmp_path):
    outs, engine = _run(tmp_path, _geometry(2, 2), HillInfer(alpha=1), steps=100)
    engine.close()
    exact, engine = _run(tmp_path, _geometry(2, 2), HillInfer(alpha=0.1, tokens=10_000), steps=100)
    engine.close()
    for a, b in zip(outs, exact, strict=True):
        assert torch.equal(a[0], b[0])


def test_mass_reads_less_when_attention_is_peaked(tmp_path):
    geometry = _geometry(2, 2)
    for policy, most in [(HillInfer(alpha=0.5), 250), (HillInfer(alpha=0.5, mass=0.5, floor=8), 100)]:
        _, engine = _run(tmp_path, geometry, policy, steps=20, hot="60%")
        ledger = engine.settled_ledger()
        assert (ledger.selected_hot + ledger.selected_cold) / 20 <= most + 10
        engine.close()


def test_half_precision_keys_and_values(tmp_path):
    for dtype in (torch.float16, torch.bfloat16):
        geometry = _geometry(2, 2, dtype=dtype)
        engine = _engine(tmp_path, geometry, HillInfer(alpha=0.1, floor=8))
        generator = torch.Generator().manual_seed(0)
        for count in (200, 1, 1, 1):
            query, keys, values = (x.to(dtype) for x in _tokens(geometry, count, generator))
            run = engine.decode if count == 1 else engine.exact
            out = run(0, 0, _flat(query), keys, values, SCALING)
            assert out.dtype == dtype
            assert torch.isfinite(out).all()
        engine.close()


def test_the_device_scores_while_the_host_does(tmp_path, monkeypatch):
    """Nobody has to wait for it: here the host's share takes until the device, however late, has a block done."""
    geometry = dataclasses.replace(_geometry(4, 2), head_dim=256)  # enough to scan for two threads
    policy = HillInfer(alpha=0.3, floor=8, mass=0.999)  # more than the highest scores: not done in one call
    _, engine = _run(tmp_path, geometry, policy, prompt=8000, steps=1, hot="40%", trace=True, balance="off")
    launches, submit, score = [], SoftwareScorer.submit, Evaluator._host

    def submitted(*args):
        launches.append(submit(*args))
        return launches[-1]

    def until_the_device_works(*args):
        scored = score(*args)
        late = time.monotonic() + 60
        while launches[-1]._launch.seconds[1] == 0:
            assert time.monotonic() < late, "nobody works on the launch while the host scores"
            time.sleep(0)
        return scored

    monkeypatch.setattr(SoftwareScorer, "submit", submitted)
    monkeypatch.setattr(Evaluator, "_host", until_the_device_works)
    query, keys, values = _tokens(geometry, 1, torch.Generator().manual_seed(1))
    engine.decode(0, 0, _flat(query), keys, values, SCALING)
    device = [span for span in engine.trace.spans if span.name == "csd score"]
    host = [span for span in engine.trace.spans if span.name == "host score"]
    assert device[-1].start < host[-1].end
    assert {span.thread for span in device}.isdisjoint(span.thread for span in host)
    path = tmp_path / "trace.json"
    engine.trace.write(path)
    assert '"csd score"' in path.read_text()
    engine.close()


def test_a_flipped_bit_stops_the_step_that_would_have_used_it(tmp_path):
    geometry = _geometry(2, 2)
    _, engine = _run(tmp_path, geometry, HillInfer(alpha=0.5), steps=1, hot="60%")
    engine.csd.flush()
    path = f"/proc/self/fd/{engine.csd.rows.logs[0].file.fd}"
    with open(path, "r+b", buffering=0) as file:
        file.write(bytes(500 * geometry.row_bytes))
    query, keys, values = _tokens(geometry, 1, torch.Generator().manual_seed(9))
    with pytest.raises(CorruptRecordError, match="layer 0, sequence 0, tokens"):
        engine.decode(0, 0, _flat(query), keys, values, SCALING)
    engine.close()


def test_an_unknown_device_is_named():
    with pytest.raises(SettingError, match="known are software"):
        StoreSettings(device="fpga")
