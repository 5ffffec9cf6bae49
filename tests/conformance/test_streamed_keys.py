"""Keys that stay on the drive: the same scores; and where the drive reaches the card, the host never sees a key."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from hillinfer.csd.contract import Run
from tests.conformance.conftest import GEOMETRY
from tests.conformance.held import Held, random_query, random_runs

TOKENS = 64 * 40


@pytest.fixture
def streaming(driver, devices, tmp_path):
    with contextlib.closing(devices.open(driver, GEOMETRY, tmp_path, device_keys="stream")) as device:
        yield Held(device, GEOMETRY)


def test_streamed_keys_give_the_same_scores(streaming):
    rng = np.random.default_rng(0)
    streams = [streaming.fresh(64 * 3, layer=layer) for layer in (0, 1)]
    work = []
    for turn in range(8):
        stream = streams[turn % 2]
        streaming.append(stream, 64 * int(rng.integers(1, 12)), seed=turn)
        query, runs = random_query(rng, GEOMETRY), random_runs(rng, len(streaming.rows[stream]))
        work.append((stream, query, runs, streaming.device.submit(stream, query, runs)))
    for stream, query, runs, ticket in work:
        streaming.check(stream, query, runs, list(ticket))


@pytest.mark.p2p
def test_p2p_keys_go_from_the_drive_to_the_card(streaming):
    stream = streaming.fresh(TOKENS)
    streaming.device.flush()
    query, whole = random_query(np.random.default_rng(1), GEOMETRY), Run(0, TOKENS)
    streaming.check(stream, query, [whole], list(streaming.device.submit(stream, query, [whole])))
    counters = streaming.device.counters
    assert counters.p2p_bytes == counters.scan_bytes > 0
    assert counters.host_key_bytes == 0
