"""Streams that are never scored: rows like any other's, and nothing in the scoring copy."""

from __future__ import annotations

import numpy as np
import pytest

from hillinfer.csd.contract import Run
from hillinfer.errors import DeviceError
from hillinfer.kv.keys import ScoringKeys
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


def test_keys_that_come_after_their_rows_and_others_in_their_place(held):
    """As a copy has them that is fitted to a prompt, and fitted again later."""
    stream, first, other = held.fresh(), held.fresh(320, seed=5), held.fresh(384, seed=6)
    _without_keys(held, stream, 320, seed=5)
    query, all_runs = random_query(np.random.default_rng(6), held.geometry), [Run(0, 128), Run(192, 128)]

    def keys(of, start, stop):
        whole = held.keys[of]
        return ScoringKeys(whole.integers[start:stop], whole.exponents[start // 64 : stop // 64])

    with pytest.raises(DeviceError, match="leave a gap"):
        held.device.rekey(stream, 64, keys(first, 64, 128))
    for start, stop in ((0, 128), (128, 320)):
        held.device.rekey(stream, start, keys(first, start, stop))
    held.keys[stream] = held.keys[first]
    held.check(stream, query, all_runs, list(held.device.submit(stream, query, all_runs)))
    held.append(stream, 64, seed=7)
    with pytest.raises(DeviceError, match="leave a gap"):
        held.device.rekey(stream, 448, keys(other, 0, 64))
    before = held.device.counters.scoring_bytes
    for start, stop in ((0, 192), (192, 384)):
        held.device.rekey(stream, start, keys(other, start, stop))
    assert held.device.counters.scoring_bytes == before
    held.keys[stream] = held.keys[other]
    held.check(stream, query, [Run(0, 384)], list(held.device.submit(stream, query, [Run(0, 384)])))
