"""Several boards behind one device: the scores of one, by layer and by tokens; and each has its share only."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.csd.boards.native import NativeBoard
from hillinfer.csd.contract import Run, Stream
from hillinfer.csd.several import share_of_layers, share_of_tokens
from hillinfer.errors import DeviceError, DeviceFull
from tests.csd.conftest import GEOMETRY
from tests.csd.kernel.twins import Failing, Twins, open_kernel, some_geometry


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    boards=st.integers(2, 4),
    split=st.sampled_from(["layer", "tokens"]),
    keys=st.sampled_from(["resident", "stream"]),
)
def test_the_scores_of_one(seed, boards, split, keys):
    """Sequences that grow by odd steps, runs that begin anywhere, tickets taken in any order."""
    rng = np.random.default_rng(seed)
    geometry = some_geometry(rng)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        several = [NativeBoard(p2p=bool(i % 2)) for i in range(boards)]
        device = open_kernel(Path(folder), several, geometry, split=split, keys=keys)
        twins = stack.enter_context(contextlib.closing(Twins(Path(folder), device, geometry)))
        streams = [Stream(int(rng.integers(geometry.layers)), sequence) for sequence in range(2)]
        for step in range(6):
            for stream in streams:
                twins.append(stream, 64 * int(rng.integers(1, 40)), int(rng.integers(1000)))
            asked = [(stream, twins.query(step), twins.runs(stream, step)) for stream in streams]
            tickets = [device.submit(*each) for each in asked]
            for ticket, each in reversed(list(zip(tickets, asked, strict=True))):
                for block, due in zip(ticket, twins.expected(*each), strict=True):
                    np.testing.assert_array_equal(block.scores, due.scores)
                    np.testing.assert_array_equal(block.positions, due.positions)


@given(st.integers(0, 50_000), st.integers(1, 5))
def test_shares_are_all_there_is(tokens, boards):
    shares = [share_of_tokens(tokens, board, boards) for board in range(boards)]
    assert sum(shares) == tokens
    assert max(shares) - min(shares) <= 1024
    layers = [share_of_layers(GEOMETRY, board, boards).layers for board in range(boards)]
    assert sum(layers) == GEOMETRY.layers


@pytest.mark.parametrize("split", ["layer", "tokens"])
def test_each_board_holds_its_share(tmp_path, split):
    boards = [NativeBoard(memory_bytes=1 << 24) for _ in range(2)]
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, boards, split=split))) as twins:
        for layer in range(2):
            twins.append(Stream(layer, 0), 8192)
            twins.check(Stream(layer, 0), twins.query(), [Run(0, 8192)])
        assert boards[0].taken == boards[1].taken
        assert twins.device.counters.scoring_bytes == 2 * 8192 * 128  # nothing is held twice
        assert twins.device.counters.scanned_tokens == 2 * 8192
        assert twins.device.capabilities.memory_bytes == 1 << 25
    assert boards[0].taken == boards[1].taken == 0


@pytest.mark.parametrize("split", ["layer", "tokens"])
def test_room_is_that_of_the_shares(tmp_path, split):
    """Two boards take what one has no room for."""
    tokens, memory = 12288, 3 << 20
    one = open_kernel(tmp_path, NativeBoard(memory_bytes=memory), depth=2)
    with pytest.raises(DeviceFull):
        one.check_room(tokens, 1)
    one.close()
    boards = [NativeBoard(memory_bytes=memory) for _ in range(2)]
    with contextlib.closing(open_kernel(tmp_path, boards, split=split, depth=2)) as two:
        two.check_room(tokens, 1)
        with pytest.raises(DeviceFull):
            two.check_room(3 * tokens, 1)


@pytest.mark.parametrize("split", ["layer", "tokens"])
def test_one_that_fails_is_told_and_all_are_closed(tmp_path, split):
    boards = [NativeBoard(memory_bytes=1 << 24), Failing(0, memory_bytes=1 << 24)]
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, boards, split=split))) as twins:
        stream = Stream(1, 0)
        twins.append(stream, 4096)
        tickets = [twins.device.submit(stream, twins.query(), [Run(0, 4096)]) for _ in range(3)]
        tickets[1].cancel()
        assert list(tickets[1]) == []
        with pytest.raises(DeviceError, match="fell off the bus"):
            list(tickets[2])
    assert boards[0].taken == boards[1].taken == 0
