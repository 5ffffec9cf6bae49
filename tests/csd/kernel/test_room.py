"""Memory of the board: what fits is known before anything is computed, and what does not is told with its fix."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hillinfer.csd.abi import Layout
from hillinfer.csd.boards.native import NativeBoard
from hillinfer.csd.contract import Run, Stream
from hillinfer.csd.kernel.resident import ResidentKeys
from hillinfer.errors import ColdPoolFull, DeviceFull
from tests.csd.conftest import GEOMETRY
from tests.csd.kernel.twins import Twins, open_kernel, same

A, B = Stream(0, 0), Stream(1, 0)
ROW = 2 * 64  # bytes of a token's keys in the kernel's layout, for both formats: two heads, a beat each


def test_resident_where_it_fits_and_what_was_promised_does_fit(tmp_path):
    """As many tokens as check_room allows can be appended and scored."""
    board = NativeBoard(memory_bytes=3 << 20, p2p=True)
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, board, depth=2))) as twins:
        fits = next(n for n in range(64 * 200, 0, -640) if _fits(twins.device, n))
        assert fits > 64 * 100
        for stream in (A, B):
            for _ in range(fits // 64):
                twins.append(stream, 64, seed=1)
            twins.check(stream, twins.query(), [Run(0, fits)])
        assert twins.device.scorer.keys == "resident"
        assert twins.device.counters.scoring_bytes == 2 * fits * ROW


def _fits(device, tokens):
    device.check_room(tokens, 1)
    return device.scorer.keys == "resident"


@pytest.mark.parametrize(("p2p", "keys"), [(False, "auto"), (True, "resident")])
def test_keys_that_do_not_fit_are_told_before_anything_is_lost(tmp_path, p2p, keys):
    board = NativeBoard(memory_bytes=3 << 20, p2p=p2p)
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, board, keys=keys, depth=2))) as twins:
        twins.append(A, 640)
        needed = 2 * 2 * 100352 * ROW / 1e6
        with pytest.raises(DeviceFull) as error:
            twins.device.check_room(100_000, 2)
        message = str(error.value)
        assert "native has 3.1 MB of memory" in message
        assert "100000 tokens in 2 sequences and 2 layers need" in message
        assert abs(float(message.split(" need ")[1].split(" MB")[0]) - needed) < 0.3
        assert "--device-keys stream" in message
        assert twins.device.scorer.keys == "resident"
        twins.check(A, twins.query(), [Run(0, 640)])  # nothing was lost


def test_rows_that_are_never_scored_need_no_room_on_the_board(tmp_path):
    board = NativeBoard(memory_bytes=3 << 20)
    with contextlib.closing(open_kernel(tmp_path, board, depth=2)) as device:
        with pytest.raises(DeviceFull):
            device.check_room(100_000, 2)
        device.check_room(100_000, 2, scored=False)
        with pytest.raises(ColdPoolFull):
            device.check_room(1 << 40, 1, scored=False)


def test_auto_streams_where_the_board_has_p2p(tmp_path):
    board = NativeBoard(memory_bytes=3 << 20, p2p=True)
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, board, depth=2, ring=2))) as twins:
        twins.device.check_room(1000, 1)
        assert twins.device.scorer.keys == "resident"
        twins.device.check_room(100_000, 2)
        assert twins.device.scorer.keys == "stream"
        twins.append(A, 640)
        twins.check(A, twins.query(), [Run(0, 640)])
        with pytest.raises(ColdPoolFull):
            twins.device.check_room(1 << 40, 1)


def test_a_board_that_fills_up_without_a_check(tmp_path):
    board = NativeBoard(memory_bytes=1 << 20)
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, board, depth=1))) as twins:
        twins.append(A, 640)
        with pytest.raises(DeviceFull, match=r"bytes of memory left, and KEYS needs .*--device-keys stream"):
            twins.append(A, 12800)
        twins.check(A, twins.query(), [Run(0, 640)])


def test_a_board_with_room_for_one_launch_at_a_time(tmp_path):
    """Keys have taken the rest: pieces wait for the buffers there are, whatever depth was asked for."""
    board = NativeBoard(memory_bytes=4 * 1024 * ROW + 16384 + 8192)
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, board, depth=64))) as twins:
        twins.append(A, 4096)
        asked = [(A, twins.query(seed), [Run(64, 4032)]) for seed in range(4)]
        tickets = [twins.device.submit(*each) for each in asked]
        for ticket, each in reversed(list(zip(tickets, asked, strict=True))):
            same(list(ticket), twins.expected(*each))


@given(st.lists(st.integers(1, 40), min_size=1, max_size=12), st.sampled_from([64, 256, 1024, 4096]))
def test_segments_take_what_was_counted(parts, chunk):
    """However a stream grows, its segments take no more than ``board_bytes`` says."""
    board = NativeBoard(memory_bytes=1 << 40)
    keys = ResidentKeys(board, 1, ROW, chunk)
    tokens = 0
    for tiles in parts:
        keys.append(A, tokens, np.zeros(tiles * 64 * ROW, np.uint8))
        tokens += tiles * 64
    held = sum((segment.end - segment.first) * ROW for segment in keys._segments[A])
    assert keys.board_bytes(tokens, 1) == held + chunk * ROW
    assert board.taken <= 2 * held + (1 << 20)
    assert held <= max(1024, 2 * tokens) * ROW
    assert list(keys.cut(Run(0, tokens))) == [
        Run(segment.first, min(segment.end, tokens) - segment.first) for segment in keys._segments[A]
    ]
    board.close()


def test_the_layout_is_as_counted_here():
    shape = (GEOMETRY.kv_heads, GEOMETRY.group, GEOMETRY.head_dim)
    assert Layout("int8", *shape).row_bytes == Layout("fp16_int8", *shape).row_bytes == ROW


@pytest.mark.parametrize("row", [64, 192, 320, 1024])
@pytest.mark.parametrize(("layers", "sequences"), [(1, 1), (5, 3)])
def test_what_was_counted_is_enough(row, layers, sequences):
    """Streams that grow together, by prompts and by tiles, on a board with exactly the memory that was asked for."""
    chunk, tokens = 4096, 20480 + 64
    need = ResidentKeys(NativeBoard(), layers, row, chunk).board_bytes(tokens, sequences)
    board = NativeBoard(memory_bytes=need, p2p=True)
    keys = ResidentKeys(board, layers, row, chunk)
    streams = [Stream(layer, sequence) for layer in range(layers) for sequence in range(sequences)]
    for first, last in itertools.pairwise([0, 2560, 2624, 2688, 2752, 10240, 20480, 20544]):
        for stream in streams:
            keys.append(stream, first, np.zeros((last - first) * row, np.uint8))
    board.close()
