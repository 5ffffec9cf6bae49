"""Much at once: a thousand launches of random sizes, a full queue, several threads."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

from hillinfer.csd.contract import Run
from tests.conformance.held import random_query, random_runs

TOKENS = 64 * 16


def test_a_thousand_random_submissions(held):
    """Streams that grow meanwhile, up to 24 launches under way, taken in order, some cancelled."""
    rng = np.random.default_rng(1000)
    streams = [held.fresh(64, layer=layer) for layer in (0, 1, 0, 1)]
    queries = [random_query(rng, held.geometry) for _ in range(20)]
    flying: deque = deque()

    def take():
        ticket, stream, query, runs = flying.popleft()
        held.check(stream, query, runs, list(ticket))

    for _ in range(1000):
        stream = streams[int(rng.integers(4))]
        tokens = len(held.rows[stream])
        if tokens < TOKENS and rng.random() < 0.1:
            held.append(stream, 64 * int(rng.integers(1, 4)), seed=int(rng.integers(1 << 30)))
            continue
        query, runs = queries[int(rng.integers(20))], random_runs(rng, tokens, most=64 * int(rng.integers(1, 5)))
        ticket = held.device.submit(stream, query, runs)
        if rng.random() < 0.05:
            ticket.cancel()
            continue
        flying.append((ticket, stream, query, runs))
        while len(flying) > rng.integers(1, 24):
            take()
    while flying:
        take()


def test_a_full_queue_waits_for_room(held):
    stream = held.fresh(64)
    query = random_query(np.random.default_rng(2), held.geometry)
    tickets = [held.device.submit(stream, query, [Run(0, 64)]) for _ in range(300)]
    for ticket in tickets:
        held.check(stream, query, [Run(0, 64)], list(ticket))


def test_threads_append_submit_and_read_at_the_same_time(held):
    streams = [held.fresh(128, layer=number % 2) for number in range(4)]
    wrong: list[BaseException] = []

    def work(number):
        rng, stream = np.random.default_rng(number), streams[number]
        try:
            for turn in range(15):
                held.append(stream, 64, seed=turn)
                tokens = len(held.rows[stream])
                query, runs = random_query(rng, held.geometry), random_runs(rng, tokens)
                ticket = held.device.submit(stream, query, runs)
                positions = np.flatnonzero(rng.random(tokens) < 0.3)
                out = np.empty((len(positions), held.geometry.row_bytes), np.uint8)
                reading = held.device.read(stream, positions, out)
                held.check(stream, query, runs, list(ticket))
                reading.wait()
                np.testing.assert_array_equal(out, held.rows[stream][positions])
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
