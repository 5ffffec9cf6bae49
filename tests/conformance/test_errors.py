"""What a device refuses, in words, and goes on."""

from __future__ import annotations

import numpy as np
import pytest

from hillinfer.csd.contract import Run
from hillinfer.errors import ColdPoolError, DeviceError
from tests.conformance.drivers import WITH_P2P
from tests.conformance.held import random_query, random_tokens

QUERY_SEED = 3


def _still_works(held, stream):
    query, whole = random_query(np.random.default_rng(QUERY_SEED), held.geometry), Run(0, len(held.rows[stream]))
    held.check(stream, query, [whole], list(held.device.submit(stream, query, [whole])))


@pytest.mark.parametrize("run", [Run(1, 64), Run(0, 63), Run(0, 0), Run(64, 128), Run(128, 64), Run(-64, 64)])
def test_runs_outside_the_stream_are_refused(held, run):
    stream = held.fresh(128)
    with pytest.raises(DeviceError, match="no whole tiles"):
        held.device.submit(stream, random_query(np.random.default_rng(QUERY_SEED), held.geometry), [Run(0, 64), run])
    _still_works(held, stream)


def test_a_stream_without_tokens_has_no_runs(held):
    with pytest.raises(DeviceError, match="no whole tiles"):
        held.device.submit(held.fresh(), random_query(np.random.default_rng(QUERY_SEED), held.geometry), [Run(0, 64)])


@pytest.mark.parametrize("first", [0, 64, 192])
def test_tokens_out_of_order_are_refused(held, first):
    stream = held.fresh(128)
    rows, keys = random_tokens(np.random.default_rng(0), held.geometry, 64)
    with pytest.raises(DeviceError, match="not the next whole tiles"):
        held.device.append(stream, first, rows, keys)
    _still_works(held, stream)


def test_half_a_tile_is_refused(held):
    stream = held.fresh(64)
    rows, keys = random_tokens(np.random.default_rng(0), held.geometry, 64)
    with pytest.raises(DeviceError, match="not the next whole tiles"):
        held.device.append(stream, 64, rows[:32], keys)
    _still_works(held, stream)


def test_more_tokens_than_it_was_opened_for_are_refused(held):
    stream = held.fresh()
    rows, keys = random_tokens(np.random.default_rng(0), held.geometry, (1 << 14) + 64)
    with pytest.raises(DeviceError, match=f"at most {1 << 14} tokens"):
        held.device.append(stream, 0, rows, keys)
    held.append(stream, 64)
    _still_works(held, stream)


def test_more_room_than_there_is_is_told_beforehand(held):
    held.device.check_room(64, 1)
    with pytest.raises((ColdPoolError, DeviceError)):
        held.device.check_room(1 << 40, 1 << 10)


def test_capabilities_are_said(held, driver):
    capabilities = held.device.capabilities
    assert driver in capabilities.name
    assert "int8" in capabilities.key_formats
    assert capabilities.p2p == (driver in WITH_P2P)
