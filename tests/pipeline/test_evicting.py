"""The evicting engine whatever the policy: budgets in measured bytes, conversations, heads that keep unequally."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from hillinfer import HillInferCache, policies
from hillinfer.config import StoreSettings
from hillinfer.errors import MemoryBudgetError, SettingError
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.opening import open_engine
from hillinfer.policies import EvictingPolicy, Evictor, SnapKV, StreamingLLM, TokenBudget
from tests.integrations.test_hillinfer_cache import _generate
from tests.policies.stepwise import SCALING, dense, random_tokens
from tests.tiny import random_ids, tiny

DROPPING = [
    policies.StreamingLLM,
    policies.H2O,
    lambda **settings: policies.SnapKV(window=8, **settings),
    lambda **settings: policies.PyramidKV(window=8, **settings),
    lambda **settings: policies.CAKE(window=8, **settings),
]


def _open(policy, geometry, *, sequences=1, expected=0):
    sizes = {"sequences": sequences, "max_tokens": 1 << 14, "expected": expected}
    return open_engine(geometry, policy, StoreSettings(), device=torch.device("cpu"), **sizes)


def _feed(engine, chunk, generator, *, sequences=1):
    geometry = engine.geometry
    outs = []
    for layer in range(geometry.layers):
        for sequence in range(sequences):
            query, keys, values = random_tokens(geometry, chunk, generator, whole=False)
            run = engine.decode if chunk == 1 else engine.exact
            outs.append(run(layer, sequence, query.flatten(0, 1), keys, values, SCALING))
    return outs


@pytest.mark.parametrize("make", DROPPING)
@pytest.mark.parametrize("budget", ["30%", "24", "48KiB"])
def test_budgets_are_never_exceeded_and_a_conversation_goes_on(make, budget):
    """Measured bytes, from the first decode step of each prompt on; every row while a prompt is read."""
    geometry = Geometry(2, 2, 2, 16, torch.float32)
    engine = _open(make(budget=budget), geometry, sequences=2)
    generator = torch.Generator().manual_seed(0)
    length = held = peak = 0
    for chunk in [60, 33, *[1] * 30, 40, *[1] * 20]:
        _feed(engine, chunk, generator, sequences=2)
        length += chunk
        device = engine.settled_ledger().tiers.device
        works = engine._works.values()
        assert device.bytes == sum(work.rows.nbytes for work in works)
        if chunk > 1:
            assert device.bytes == held + geometry.kv_bytes(chunk, 2)
        else:
            allowed = TokenBudget.parse(budget).fitted(geometry, 2).resolve(length)
            assert device.bytes <= geometry.kv_bytes(allowed, 2)
            assert device.bytes >= geometry.kv_bytes(allowed, 2) * 0.9
            assert engine.ledger.dropped_tokens >= length - allowed
        held, peak = device.bytes, max(peak, device.bytes)
        assert peak <= device.peak_bytes <= peak + geometry.kv_bytes(length, 2)
    assert all(work.rows.tokens == length for work in works)
    engine.close()


@pytest.mark.parametrize("make", DROPPING)
def test_reset_leaves_nothing_of_the_context_before(make):
    model = tiny("llama", kv_heads=2)
    one, two = random_ids(70, seed=1), random_ids(64, seed=2)
    with HillInferCache(model, make(budget=20)) as cache:
        first = _generate(model, two, cache, new=8)[0]
        cache.reset()
        _generate(model, one, cache, new=8)
        cache.reset()
        assert torch.equal(_generate(model, two, cache, new=8)[0], first)


@dataclass(frozen=True)
class Uneven(EvictingPolicy):
    """share   of both heads' budget that the first one gets"""

    name: ClassVar[str] = "uneven"
    source: ClassVar[str] = "this test"

    share: float = 0.75

    def open(self, geometry):  # noqa: ARG002
        return _Uneven(self.share)


class _Uneven(Evictor):
    """Two heads; the first keeps more of its newest rows than the second."""

    weighs = False

    def __init__(self, share):
        self._share = share

    def scores(self, held, budget):
        raise NotImplementedError

    def keep(self, held, budget):
        first = int(2 * budget * self._share)
        return [
            held.positions[head, :count].argsort()[-wanted:]
            for head, (count, wanted) in enumerate(zip(held.counts, (first, 2 * budget - first), strict=True))
        ]


@dataclass(frozen=True)
class UnevenWeighed(Uneven):
    name: ClassVar[str] = "uneven-weighed"

    def open(self, geometry):  # noqa: ARG002
        evictor = _Uneven(self.share)
        type(evictor).weighs = True
        return evictor


@pytest.mark.parametrize("policy", [Uneven(budget=20), UnevenWeighed(budget=20)])
def test_heads_may_keep_unequally(policy):
    geometry = Geometry(1, 2, 3, 16, torch.float32)
    engine = _open(policy, geometry)
    told = []
    engine.witness = lambda _layer, _sequence, sets: told.append([each.tolist() for each in sets])
    generator = torch.Generator().manual_seed(0)
    seen = [torch.empty(2, 0, 16), torch.empty(2, 0, 16)]
    for chunk in [50, 1, 1, 1, 1, 7, 1, 1]:
        query, keys, values = random_tokens(geometry, chunk, generator, whole=False)
        run = engine.decode if chunk == 1 else engine.exact
        out = run(0, 0, query.flatten(0, 1), keys, values, SCALING)
        seen = [torch.cat([old, new], 1) for old, new in zip(seen, (keys, values), strict=True)]
        if chunk == 1:
            now = seen[0].shape[1] - 1
            assert told[-1] == [list(range(now - 30, now)), list(range(now - 10, now))]
            torch.testing.assert_close(out, dense(query, *seen, told[-1]).flatten(0, 1))
    assert engine.ledger.tiers.device.bytes == 40 * 2 * 16 * 4


def test_a_policy_that_keeps_too_much_is_stopped():
    engine = _open(Uneven(budget=20, share=1.4), Geometry(1, 2, 1, 16, torch.float32))
    generator = torch.Generator().manual_seed(0)
    _feed(engine, 90, generator)
    with pytest.raises(SettingError, match="kept 130 rows of a layer whose 2 heads may keep 20 each"):
        _feed(engine, 1, generator)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("make", DROPPING)
def test_half_precision(make, dtype):
    geometry = Geometry(1, 2, 2, 16, dtype)
    engine = _open(make(budget=20), geometry)
    generator = torch.Generator().manual_seed(0)
    for count in (70, 1, 1, 1):
        query, keys, values = (x.to(dtype) for x in random_tokens(geometry, count, generator))
        run = engine.decode if count == 1 else engine.exact
        out = run(0, 0, query.flatten(0, 1), keys, values, SCALING)
        assert out.dtype == dtype
        assert torch.isfinite(out).all()
    assert engine.ledger.tiers.device.bytes == 20 * geometry.row_elements * 2


def test_a_prompt_that_cannot_be_held_is_refused_before_it_is_read():
    with pytest.raises(MemoryBudgetError, match=r"holds a whole prompt until it is over.*--policy hillinfer"):
        _open(StreamingLLM(), Geometry(64, 64, 1, 256, torch.float32), expected=10**9)


def test_the_prompts_budget_is_checked_before_anything_is_computed():
    model = tiny("llama", kv_heads=2)
    with (
        HillInferCache(model, SnapKV(budget="1%")) as cache,
        pytest.raises(SettingError, match="snapkv needs at least"),
    ):
        cache.expect(500)


@pytest.mark.parametrize("make", DROPPING)
def test_a_text_that_begins_with_decoding(make):
    """No prompt was read: a window has nothing to look back on, and the budget holds all the same."""
    engine = _open(make(budget=12), Geometry(2, 2, 2, 16, torch.float32))
    generator = torch.Generator().manual_seed(0)
    for step in range(20):
        for out in _feed(engine, 1, generator):
            assert torch.isfinite(out).all()
        assert engine.ledger.tiers.device.bytes == engine.geometry.kv_bytes(min(step + 1, 12), 1)
