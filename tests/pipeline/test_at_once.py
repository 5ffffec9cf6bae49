"""A step in one native call is the step in many, to the last bit: output, sets, placement and counts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.config import Budget, StoreSettings
from hillinfer.csd.contract import Stream
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.policies import HillInfer

SCALING = 0.25


@dataclass(frozen=True)
class InSteps(HillInfer):
    """HillInfer for which Python asks, selects, finds and attends one after the other."""

    def best_of(self, cached):  # noqa: ARG002
        return None


class Sides:
    """Two engines that are told the same."""

    def __init__(self, folder, geometry, hot, threads, **policy):
        store = StoreSettings(hot_bytes=Budget.parse(hot), cold_dir=folder, threads=threads)
        self.sets, self.engines = ([], []), []
        for number, kind in enumerate((HillInfer, InSteps)):
            engine = TieredEngine(
                geometry, kind(floor=8, **policy), store, sequences=1, max_tokens=4096, device=torch.device("cpu")
            )
            engine.witness = lambda layer, sequence, sets, to=self.sets[number]: to.append(sets)  # noqa: ARG005
            self.engines.append(engine)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for engine in self.engines:
            engine.close()

    def run(self, name, *arguments):
        ours, theirs = (getattr(engine, name)(0, 0, *arguments, SCALING) for engine in self.engines)
        assert torch.equal(ours, theirs)


def tokens(geometry, count, generator):
    shape = geometry.kv_heads, count, geometry.head_dim
    query = torch.randn(geometry.kv_heads * geometry.group, *shape[1:], generator=generator)
    keys, values = torch.randn(shape, generator=generator), torch.randn(shape, generator=generator)
    return [each.to(geometry.dtype) for each in (query * 2, keys, values)]


@settings(max_examples=12)
@given(
    heads=st.sampled_from([(1, 1), (2, 3), (3, 5)]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16, torch.float16]),
    hot=st.sampled_from(["16%", "30%", "100%", "150%"]),
    threads=st.integers(1, 3),
    ranking=st.sampled_from([("max-lse", 0), ("max-lse", 1), ("max-lse", 100), ("sum", None)]),
    prompt=st.integers(40, 700),
    steps=st.integers(1, 90),
    seed=st.integers(0, 99),
)
def test_one_call_or_many(tmp_path, heads, dtype, hot, threads, ranking, prompt, steps, seed):
    geometry = Geometry(1, *heads, 16, dtype)
    generator = torch.Generator().manual_seed(seed)
    with Sides(tmp_path, geometry, hot, threads, alpha=0.15, reduce=ranking[0], cold_margin=ranking[1]) as sides:
        sides.run("exact", *tokens(geometry, prompt, generator))
        for _ in range(steps):
            sides.run("decode", *tokens(geometry, 1, generator))
        for ours, theirs in zip(*sides.sets, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
        ledgers = [dataclasses.asdict(engine.settled_ledger()) for engine in sides.engines]
        assert ledgers[0] == ledgers[1]
        ours, theirs = (engine._works[Stream(0, 0)].stream for engine in sides.engines)
        assert np.array_equal(ours.placement.counts, theirs.placement.counts)
        assert np.array_equal(ours.hot_pool.slot_of, theirs.hot_pool.slot_of)
        counters = [engine.csd.counters for engine in sides.engines]
        for name in ("scanned_tokens", "scan_bytes", "launches", "read_rows"):
            assert getattr(counters[0], name) == getattr(counters[1], name)


def test_a_subclass_that_selects_for_itself_is_asked():
    class Mine(HillInfer):
        def select(self, scores):
            return super().select(scores)

    assert HillInfer().best_of(1000) == 100
    assert Mine().best_of(1000) is None
    assert HillInfer(scope="head").best_of(1000) is None
    assert HillInfer(mass=0.9).best_of(1000) is None
