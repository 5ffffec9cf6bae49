"""KernelDevice on the C simulation: the software device's scores to the bit, whatever its settings."""

from __future__ import annotations

import contextlib
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hillinfer.csd.boards.native import NativeBoard
from hillinfer.csd.contract import Run, Stream
from hillinfer.errors import CorruptRecordError, DeviceError, SettingError
from hillinfer.kv.geometry import Geometry
from tests.csd.conftest import GEOMETRY
from tests.csd.kernel.twins import Twins, open_kernel, some_geometry

A, B = Stream(0, 0), Stream(1, 2)


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    keys=st.sampled_from(["resident", "stream"]),
    key_format=st.sampled_from(["int8", "int4"]),
    copy=st.sampled_from(["auto", "integers", "fp16"]),
    p2p=st.booleans(),
    chunk=st.sampled_from([64, 256, 2048]),
    piece_bytes=st.sampled_from([1, 64 << 10, 4 << 20]),
    depth=st.sampled_from([1, 2, 7, 64]),
    ring=st.integers(1, 4),
)
def test_any_geometry_any_settings_interleaved(seed, keys, key_format, copy, p2p, chunk, piece_bytes, depth, ring):
    """Several sequences; submissions that are taken late, in another order, in part, or not at all."""
    rng = np.random.default_rng(seed)
    geometry = some_geometry(rng)
    given = {
        "keys": keys,
        "key_format": key_format,
        "copy": copy,
        "chunk": chunk,
        "piece_bytes": piece_bytes,
        "depth": depth,
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        device = open_kernel(Path(folder), NativeBoard(p2p=p2p), geometry, ring=ring, **given)
        twins = stack.enter_context(contextlib.closing(Twins(Path(folder), device, geometry, key_format)))
        open_tickets = []
        for step in range(30):
            what = int(rng.integers(6))
            stream = Stream(int(rng.integers(geometry.layers)), int(rng.integers(3)))
            if what == 0 or stream not in twins.held:
                twins.append(stream, 64 * int(rng.integers(1, 20)), int(rng.integers(1000)))
            elif what < 4:
                query = twins.query(int(rng.integers(1000)), ("max", "sum")[int(rng.integers(2))])
                runs = twins.runs(stream, step)
                open_tickets.append((device.submit(stream, query, runs), stream, query, runs))
            elif open_tickets:
                ticket, *asked = open_tickets.pop(int(rng.integers(len(open_tickets))))
                _take(ticket, twins, asked, int(rng.integers(3)))
        for ticket, *asked in open_tickets:
            _take(ticket, twins, asked, 0)


def _take(ticket, twins, asked, how):
    stream, query, runs = asked
    if how == 0:  # merged, and nothing else is touched
        scores = np.full(twins.held[stream], 77, np.int16)
        due = scores.copy()
        ticket.merge_into(scores)
        twins.software.submit(stream, query, runs).merge_into(due)
        np.testing.assert_array_equal(scores, due)
        return
    for taken, (block, due) in enumerate(zip(ticket, twins.expected(stream, query, runs), strict=False), 1):
        np.testing.assert_array_equal(block.scores, due.scores)
        assert (block.first, block.scanned, block.index, block.of) == (due.first, due.scanned, due.index, due.of)
        if how == 2 and taken == 2:
            break
    ticket.cancel()
    assert list(ticket) == []


@pytest.fixture
def twins(tmp_path):
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path))) as twins:
        yield twins


def test_blocks_come_in_the_order_of_the_runs_across_segments(twins):
    twins.append(A, 64 * 70)
    runs = [Run(0, 64), Run(128, 2048 + 64), Run(64 * 69, 64)]
    blocks = list(twins.device.submit(A, twins.query(), runs))
    assert [block.first for block in blocks] == [0, 128, 1152, 2176, 64 * 69]
    assert [(block.index, block.of) for block in blocks] == [(0, 1), (0, 3), (1, 3), (2, 3), (0, 1)]
    twins.check(A, twins.query(), runs)


def test_rows_come_back_whatever_the_board_does(twins):
    twins.append(B, 640)
    out, due = (np.empty((320, GEOMETRY.row_bytes), np.uint8) for _ in range(2))
    for device, into in ((twins.device, out), (twins.software, due)):
        device.flush()
        device.read(B, np.arange(0, 640, 2), into).wait()
    np.testing.assert_array_equal(out, due)
    counters = twins.device.counters
    assert (counters.read_rows, counters.read_bytes) == (320, 320 * GEOMETRY.row_bytes)


def test_submitters_on_several_threads(twins):
    twins.append(A, 64 * 40)
    twins.append(B, 64 * 33, seed=1)
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for i in range(12):
            stream = (A, B)[int(rng.integers(2))]
            query, runs = twins.query(seed * 100 + i), twins.runs(stream, seed * 100 + i)
            scores = np.zeros(twins.held[stream], np.int16)
            twins.device.submit(stream, query, runs).merge_into(scores)
            for due in expected(stream, query, runs):
                if not np.array_equal(scores[due.first : due.first + due.scanned], due.scores):
                    wrong.append((seed, i, due.first))

    lock = threading.Lock()

    def expected(*asked):
        with lock:  # the software device is asked from one thread at a time
            return twins.expected(*asked)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_trace_tells_of_every_submission(tmp_path):
    told = []
    device = open_kernel(tmp_path, record=lambda *what: told.append(what))
    with contextlib.closing(Twins(tmp_path, device)) as twins:
        twins.append(A, 640)
        twins.check(A, twins.query(), [Run(0, 640)])
    ((name, thread, start, end),) = told
    assert (name, thread) == ("csd score", "native-csd")
    assert start < end


def test_closed_is_closed_and_nothing_stays(tmp_path):
    board = NativeBoard(memory_bytes=1 << 24)
    device = open_kernel(tmp_path, board)
    twins = Twins(tmp_path, device)
    twins.append(A, 64 * 40)
    tickets = [device.submit(A, twins.query(), [Run(0, 64 * 40)]) for _ in range(30)]
    device.close()
    device.close()
    assert board.taken == 0
    for use in (
        lambda: device.submit(A, twins.query(), []),
        lambda: list(tickets[-1]),
        lambda: device.check_room(64, 1),
        lambda: device.flush(),
    ):
        with pytest.raises(DeviceError, match="closed"):
            use()
    twins.close()
    assert list(tmp_path.iterdir()) == []


def test_a_device_that_is_dropped_closes(tmp_path):
    board = NativeBoard(memory_bytes=1 << 24)
    device = open_kernel(tmp_path, board)
    twins = Twins(tmp_path, device)
    twins.append(A, 640)
    twins.check(A, twins.query(), [Run(0, 640)])
    del device, twins
    assert board.taken == 0


@pytest.mark.parametrize("run", [Run(1, 64), Run(0, 63), Run(0, 0), Run(64, 128), Run(128, 64), Run(-64, 64)])
def test_what_is_not_there_is_refused(twins, run):
    twins.append(A, 128)
    with pytest.raises(DeviceError, match="no whole tiles"):
        twins.device.submit(A, twins.query(), [run])


def test_a_geometry_that_the_kernel_lacks_is_refused_before_anything_is_written(tmp_path):
    board = NativeBoard(memory_bytes=1 << 20)
    geometry = Geometry(layers=1, kv_heads=1, group=1, head_dim=1024, dtype=torch.float16)
    with pytest.raises(DeviceError, match="head_dim 1024 exceeds the 512"):
        open_kernel(tmp_path, board, geometry)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DeviceError, match="closed"):
        board.start(None, None, None, None, ())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"keys": "somewhere"}, "auto, resident, stream"),
        ({"key_format": "fp8"}, "int8 or int4"),
        ({"copy": "bf16"}, "unknown scoring copy"),
        ({"chunk": 1000}, "power of two"),
        ({"depth": 0}, "at least 1"),
        ({"split": "heads"}, "tokens, layer"),
    ],
)
def test_settings_that_mean_nothing(tmp_path, given, message):
    with pytest.raises(SettingError, match=message):
        open_kernel(tmp_path, **given)


def test_corruption_of_rows_is_told_as_ever(twins):
    twins.append(A, 256)
    twins.device.flush()
    with open(f"/proc/self/fd/{twins.device.rows.logs[0].file.fd}", "r+b", buffering=0) as file:
        file.seek(200 * GEOMETRY.row_bytes + 17)
        file.write(b"\xff\x00\xff")
    with pytest.raises(CorruptRecordError, match="layer 0, sequence 0, token 200"):
        twins.device.read(A, np.arange(256), np.empty((256, GEOMETRY.row_bytes), np.uint8)).wait()


def test_nothing_is_traced_for_what_was_given_up(tmp_path):
    told = []
    device = open_kernel(tmp_path, record=lambda *what: told.append(what), depth=2)
    with contextlib.closing(Twins(tmp_path, device)) as twins:
        twins.append(A, 64 * 64)
        tickets = [device.submit(A, twins.query(), [Run(0, 64 * 64)]) for _ in range(20)]
        for ticket in tickets[1:]:
            ticket.cancel()
        assert len(list(tickets[0])) == 4
        assert list(tickets[-1]) == []
        launched = device.counters.launches
        assert launched <= 4 + 2
        twins.check(A, twins.query(), [Run(0, 64)])
    assert len(told) == 2
