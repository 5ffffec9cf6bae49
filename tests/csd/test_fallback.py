"""A device that fails while it scores: the software device goes on from the rows, to the bit, once it is allowed to."""

from __future__ import annotations

import contextlib
import logging
import os

import numpy as np
import pytest

from hillinfer.csd.boards.native import NativeBoard
from hillinfer.csd.contract import Run, Stream
from hillinfer.errors import CorruptRecordError, DeviceError
from tests.csd.conftest import GEOMETRY
from tests.csd.kernel.twins import Failing, Twins, open_kernel

A, B = Stream(0, 0), Stream(1, 3)
RUNS = [Run(64, 1024), Run(2048, 1088)]


@contextlib.contextmanager
def filled(folder, boards, *, fallback=True, **given):
    with contextlib.closing(Twins(folder, open_kernel(folder, boards, fallback=fallback, **given))) as twins:
        for stream in (A, B):
            twins.append(stream, 64 * 60, seed=stream.layer)
        yield twins


@pytest.mark.parametrize("left", range(6))
@pytest.mark.parametrize("keys", ["resident", "stream"])
def test_every_score_is_the_same_whenever_it_dies(tmp_path, caplog, left, keys):
    """Tickets under way, a ticket of which some blocks were taken, and all later ones; tokens that come in later."""
    with filled(tmp_path, Failing(left, memory_bytes=1 << 24), keys=keys) as twins, caplog.at_level(logging.WARNING):
        queries = [twins.query(seed) for seed in range(3)]
        tickets = [twins.device.submit(stream, query, RUNS) for query in queries for stream in (A, B)]
        due = [twins.expected(stream, query, RUNS) for query in queries for stream in (A, B)]
        for i, (ticket, blocks) in enumerate(zip(tickets, due, strict=True)):
            if i % 2:
                scores = np.full(64 * 60, 77, np.int16)
                ticket.merge_into(scores)
                for block in blocks:
                    np.testing.assert_array_equal(scores[block.first : block.first + block.scanned], block.scores)
            else:
                for block, expected in zip(ticket, blocks, strict=True):
                    np.testing.assert_array_equal(block.scores, expected.scores)
                    assert (block.first, block.index) == (expected.first, expected.index)
        twins.append(A, 640)
        twins.check(A, queries[0], [Run(0, 64 * 70)])
        twins.device.check_room(64 * 80, 4)
        counters, capabilities = twins.device.counters, twins.device.capabilities
        assert counters.fallback == "the card fell off the bus"
        assert capabilities.name == "software"
        assert counters.scoring_bytes == (64 * 70 + 64 * 60) * GEOMETRY.score_key_bytes
    (warning,) = caplog.messages
    assert warning == "the device native failed (the card fell off the bus); the software device takes over"
    assert list(tmp_path.iterdir()) == []


def test_what_is_never_scored_is_not_cast_either(tmp_path):
    with filled(tmp_path, Failing(0)) as twins:
        unscored = Stream(1, 0)
        twins.device.append(unscored, 0, np.zeros((128, GEOMETRY.row_bytes), np.uint8), None)
        twins.check(A, twins.query(), RUNS)
        assert twins.device.counters.scoring_bytes == 2 * 64 * 60 * GEOMETRY.score_key_bytes
        with pytest.raises(DeviceError, match="without scoring keys"):
            twins.device.submit(unscored, twins.query(), [Run(0, 128)])


def test_nothing_is_written_twice(tmp_path):
    with filled(tmp_path, Failing(0)) as twins:
        stored = twins.device.counters.stored_bytes
        twins.check(A, twins.query(), RUNS)
        assert twins.device.counters.stored_bytes == stored
        out = np.empty((64, GEOMETRY.row_bytes), np.uint8)
        twins.device.read(B, np.arange(64), out).wait()


def test_without_leave_it_is_an_error(tmp_path):
    board = Failing(1, memory_bytes=1 << 24)
    with filled(tmp_path, board, fallback=False) as twins:
        for _ in range(2):
            with pytest.raises(DeviceError, match="fell off the bus"):
                list(twins.device.submit(A, twins.query(), RUNS))
        out, rows = np.empty((64, GEOMETRY.row_bytes), np.uint8), np.empty((64, GEOMETRY.row_bytes), np.uint8)
        twins.device.read(B, np.arange(64), out).wait()  # rows are not the card's
        twins.software.read(B, np.arange(64), rows).wait()
        np.testing.assert_array_equal(out, rows)
        assert twins.device.counters.fallback is None
    assert board.taken == 0
    assert list(tmp_path.iterdir()) == []


def test_a_card_that_fills_up(tmp_path):
    board = NativeBoard(memory_bytes=1 << 20)
    with filled(tmp_path, board, depth=1) as twins:
        for stream in (A, B):
            for tokens in (640, 64, 6400):
                twins.append(stream, tokens, seed=tokens)
                twins.check(stream, twins.query(), [Run(0, twins.held[stream])])
        assert "bytes of memory left" in str(twins.device.counters.fallback)
        assert board.taken == 0


def test_a_document_that_the_card_has_no_room_for(tmp_path):
    device = open_kernel(tmp_path, NativeBoard(memory_bytes=1 << 20), fallback=True)
    with contextlib.closing(Twins(tmp_path, device)) as twins:
        twins.device.check_room(1 << 20, 1)
        twins.append(A, 640)
        twins.check(A, twins.query(), [Run(0, 640)])
        assert "need" in str(twins.device.counters.fallback)


def test_a_key_log_that_was_cut_short(tmp_path):
    with filled(tmp_path, NativeBoard(p2p=True), keys="stream") as twins:
        twins.device.flush()
        os.ftruncate(twins.device.scorer._scorer._keys.files[0].file.fd, 4096)
        twins.check(A, twins.query(), RUNS)
        assert "shorter than what was written" in str(twins.device.counters.fallback)


def test_rows_that_are_wrong_are_never_scored(tmp_path):
    """The copy is made from checked rows: what the log lost is an error, not another score."""
    with filled(tmp_path, Failing(0)) as twins:
        twins.device.flush()
        os.ftruncate(twins.device.rows.logs[1].file.fd, 4096)
        with pytest.raises(CorruptRecordError, match="layer 1, sequence 3"):
            list(twins.device.submit(A, twins.query(), RUNS))


@pytest.mark.parametrize("split", ["layer", "tokens"])
def test_one_of_two_cards_dies(tmp_path, split):
    with filled(tmp_path, [NativeBoard(), Failing(2)], split=split) as twins:
        for seed in range(3):
            for stream in (A, B):
                twins.check(stream, twins.query(seed), RUNS)
        assert twins.device.capabilities.name == "software"


def test_closed_is_closed(tmp_path):
    with filled(tmp_path, NativeBoard()) as twins:
        ticket = twins.device.submit(A, twins.query(), RUNS)
        twins.device.close()
        with pytest.raises(DeviceError, match="closed"):
            list(ticket)
        assert twins.device.counters.fallback is None
    with filled(tmp_path, NativeBoard()) as twins:
        ticket = twins.device.submit(A, twins.query(), RUNS)
        ticket.cancel()
        assert list(ticket) == []
