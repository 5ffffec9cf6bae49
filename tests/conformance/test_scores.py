"""Scores: bit for bit those of the NumPy model, in Score Blocks, in order, at their places."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hillinfer.csd.contract import Run
from hillinfer.kv.geometry import Geometry
from tests.conformance.conftest import GEOMETRY
from tests.conformance.held import random_query, random_runs

GEOMETRIES = {
    "small": GEOMETRY,
    "wide": Geometry(1, 8, 4, 128, torch.float16),
    "odd": Geometry(1, 3, 3, 80, torch.float32),
    "dual": Geometry(1, 2, 8, 64, torch.float32),
    "mqa": Geometry(1, 1, 20, 64, torch.float32),
}


@pytest.mark.parametrize("reduce", ["max", "sum"])
@pytest.mark.parametrize("name", GEOMETRIES)
def test_scores_are_the_models(driver, devices, name, reduce):
    held, rng = devices.shared(driver, GEOMETRIES[name]), np.random.default_rng(len(name))
    stream = held.fresh(64 * 20)
    for _ in range(4):
        query, runs = random_query(rng, held.geometry, reduce), random_runs(rng, 64 * 20)
        held.check(stream, query, runs, list(held.device.submit(stream, query, runs)))


def test_blocks_come_in_the_order_of_the_runs(held):
    stream = held.fresh(64 * 40)
    runs = [Run(0, 64), Run(128, 2048 + 64), Run(64 * 39, 64)]
    query = random_query(np.random.default_rng(1), held.geometry)
    blocks = list(held.device.submit(stream, query, runs))
    assert [block.first for block in blocks] == [0, 128, 1152, 2176, 64 * 39]
    assert [block.scanned for block in blocks] == [64, 1024, 1024, 64, 64]
    assert [(block.index, block.of) for block in blocks] == [(0, 1), (0, 3), (1, 3), (2, 3), (0, 1)]
    held.check(stream, query, runs, blocks)


def test_runs_in_any_order_keep_it(held):
    stream = held.fresh(64 * 12)
    query = random_query(np.random.default_rng(2), held.geometry)
    runs = [Run(64 * 9, 128), Run(0, 64), Run(64 * 4, 192), Run(0, 64)]
    held.check(stream, query, runs, list(held.device.submit(stream, query, runs)))


def test_scores_are_merged_to_their_positions(held):
    stream = held.fresh(64 * 30)
    query = random_query(np.random.default_rng(3), held.geometry)
    runs = [Run(64, 64 * 18), Run(64 * 25, 128)]
    scores = np.full(64 * 30, 7, np.int16)
    held.device.submit(stream, query, runs).merge_into(scores)
    expected = np.full(64 * 30, 7, np.int16)
    for run in runs:
        expected[run.first : run.first + run.tokens] = held.expected(stream, query, run)
    np.testing.assert_array_equal(scores, expected)


def test_nothing_to_score_is_no_block(held):
    stream = held.fresh(64)
    assert list(held.device.submit(stream, random_query(np.random.default_rng(4), held.geometry), [])) == []


def test_tickets_are_taken_in_any_order(held):
    rng = np.random.default_rng(5)
    stream = held.fresh(64 * 10)
    work = [(random_query(rng, held.geometry), random_runs(rng, 640)) for _ in range(12)]
    tickets = [held.device.submit(stream, query, runs) for query, runs in work]
    for number in rng.permutation(len(work)):
        query, runs = work[number]
        assert tickets[number].runs == tuple(runs)
        held.check(stream, query, runs, list(tickets[number]))


def test_counters_say_what_was_scored(held):
    stream = held.fresh(64 * 6)
    before = held.device.counters.scanned_tokens, held.device.counters.launches, held.device.counters.scan_bytes
    list(held.device.submit(stream, random_query(np.random.default_rng(6), held.geometry), [Run(0, 192), Run(256, 64)]))
    counters = held.device.counters
    assert counters.scanned_tokens - before[0] == 256
    assert counters.launches - before[1] >= 2
    assert counters.scan_bytes - before[2] >= 256 * held.geometry.score_key_bytes
