"""The end of a launch, and of a device: cancelled, dropped, closed in the midst of work, closed twice, opened again."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from hillinfer.csd.contract import Run
from hillinfer.errors import DeviceError
from tests.conformance.conftest import GEOMETRY
from tests.conformance.held import Held, random_query, random_tokens

LONG = 64 * 64


@pytest.fixture
def query():
    return random_query(np.random.default_rng(8), GEOMETRY)


def test_a_cancelled_launch_ends_early(held, query):
    stream = held.fresh(LONG)
    tickets = [held.device.submit(stream, query, [Run(0, LONG)]) for _ in range(12)]
    for ticket in tickets[1:]:
        ticket.cancel()
    held.check(stream, query, [Run(0, LONG)], list(tickets[0]))
    for ticket in tickets[1:]:
        assert len(list(ticket)) <= 4
    assert len(list(tickets[-1])) < 4
    held.check(stream, query, [Run(0, 64)], list(held.device.submit(stream, query, [Run(0, 64)])))


def test_a_launch_is_cancelled_between_its_blocks(held, query):
    stream = held.fresh(LONG)
    ticket = held.device.submit(stream, query, [Run(0, LONG)])
    blocks = iter(ticket)
    assert next(blocks).first == 0
    ticket.cancel()
    ticket.cancel()
    assert len(list(blocks)) <= 3
    scores = np.empty(LONG, np.int16)
    held.device.submit(stream, query, [Run(0, LONG)]).merge_into(scores)
    np.testing.assert_array_equal(scores, held.expected(stream, query, Run(0, LONG)))


def test_tickets_that_nobody_takes_hold_nothing_up(held, query):
    stream = held.fresh(640)
    for _ in range(100):
        held.device.submit(stream, query, [Run(0, 640)])
    held.device.read(stream, np.arange(640), np.empty((640, GEOMETRY.row_bytes), np.uint8))
    held.check(stream, query, [Run(0, 640)], list(held.device.submit(stream, query, [Run(0, 640)])))


def test_a_closed_device_says_so_and_may_be_closed_again(driver, devices, tmp_path, query):
    device = devices.open(driver, GEOMETRY, tmp_path)
    held = Held(device, GEOMETRY)
    stream = held.fresh(128)
    device.close()
    device.close()
    rows, keys = random_tokens(np.random.default_rng(0), GEOMETRY, 64)
    for call in (
        lambda: device.submit(stream, query, [Run(0, 64)]),
        lambda: device.append(stream, 128, rows, keys),
        lambda: device.read(stream, np.arange(64), rows),
        device.flush,
    ):
        with pytest.raises(DeviceError, match="closed"):
            call()
    assert list(tmp_path.iterdir()) == []


def test_a_device_is_closed_in_the_midst_of_work_and_opened_again(driver, devices, tmp_path, query):
    for attempt in range(2):
        held = Held(devices.open(driver, GEOMETRY, tmp_path), GEOMETRY)
        stream = held.fresh(LONG, seed=attempt)
        held.check(stream, query, [Run(0, 256)], list(held.device.submit(stream, query, [Run(0, 256)])))
        tickets = [held.device.submit(stream, query, [Run(0, LONG)]) for _ in range(8)]
        held.device.close()
        for ticket in tickets:  # ends, one way or the other, and soon
            try:
                blocks = list(ticket)
            except DeviceError:
                continue
            assert len(blocks) <= 4
    assert list(tmp_path.iterdir()) == []


def test_a_dropped_device_closes(driver, devices, tmp_path, query):
    held = Held(devices.open(driver, GEOMETRY, tmp_path), GEOMETRY)
    stream = held.fresh(640)
    held.device.submit(stream, query, [Run(0, 640)])
    del held
    gc.collect()
    assert list(tmp_path.iterdir()) == []
