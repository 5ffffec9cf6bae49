"""Streams that are never scored: rows like any other's, and nothing in the scoring copy."""

from __future__ import annotations

import numpy as np
import pytest

from hillinfer.csd.contract import Run
from hillinfer.errors import DeviceError
from tests.conformance.held import random_query, random_tokens


def _without_keys(held, stream, tokens, seed=0):
    first = len(held.rows.get(stream, ()))
    rows, _ = random_tokens(np.random.default_rng(seed), held.geometry, tokens)
    held.device.append(stream, first, rows, None)
    held.rows[stream] = np.concatenate([held.rows[stream], rows]) if first else rows


def test_rows_without_keys_are_read_and_take_no_scoring_copy(held):
    scored, unscored = held.fresh(192), held.fresh()
    before = held.device.counters.scoring_bytes, held.device.counters.stored_bytes
    for seed, tokens in enumerate((64, 192)):
        _without_keys(held, unscored, tokens, seed)
    assert held.device.counters.scoring_bytes == before[0]
    assert held.device.counters.stored_bytes - before[1] == 256 * held.geometry.row_bytes
    out = np.empty((128, held.geometry.row_bytes), np.uint8)
    held.device.read(unscored, np.arange(0, 256, 2), out).wait()
    np.testing.assert_array_equal(out, held.rows[unscored][::2])
    query = random_query(np.random.default_rng(1), held.geometry)
    held.check(scored, query, [Run(0, 192)], list(held.device.submit(scored, query, [Run(0, 192)])))


def test_they_cannot_be_scored(held):
    stream = held.fresh()
    _without_keys(held, stream, 128)
    with pytest.raises(DeviceError, match="came without scoring keys"):
        held.device.submit(stream, random_query(np.random.default_rng(2), held.geometry), [Run(0, 64)])


def test_keys_come_with_all_tokens_or_with_none(held):
    scored, unscored = held.fresh(64), held.fresh()
    _without_keys(held, unscored, 64)
    rows, keys = random_tokens(np.random.default_rng(3), held.geometry, 64)
    for stream, given in ((scored, None), (unscored, keys)):
        with pytest.raises(DeviceError, match="with all tokens of a stream, or with none"):
            held.device.append(stream, 64, rows, given)
        out = np.empty((64, held.geometry.row_bytes), np.uint8)
        held.device.read(stream, np.arange(64), out).wait()
        np.testing.assert_array_equal(out, held.rows[stream])
