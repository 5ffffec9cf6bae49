"""Keys from the drive: a ring of pieces, no host copy where the drive writes into the board, short reads told."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest
import torch

from hillinfer.csd.boards.native import NativeBoard
from hillinfer.csd.contract import Run, Stream
from hillinfer.csd.kernel.streamed import StreamedKeys
from hillinfer.errors import ColdPoolFull, CorruptRecordError
from hillinfer.kv.geometry import Geometry
from tests.csd.kernel.twins import Twins, open_kernel

A, B = Stream(0, 0), Stream(1, 1)
SMOLLM2 = Geometry(layers=2, kv_heads=3, group=3, head_dim=64, dtype=torch.bfloat16)


@pytest.mark.parametrize("p2p", [True, False])
def test_no_host_copy_of_the_keys_where_the_drive_reaches_the_board(tmp_path, p2p):
    board = NativeBoard(p2p=p2p)
    device = open_kernel(tmp_path, board, SMOLLM2, keys="stream", piece_bytes=1 << 20)
    with contextlib.closing(Twins(tmp_path, device, SMOLLM2)) as twins:
        for stream in (A, B):
            twins.append(stream, 64 * 100)
            twins.check(stream, twins.query(), [Run(64, 64 * 99)])
        row = 3 * 2 * 64  # FP16: 32 elements a beat
        assert device.counters.scan_bytes == 2 * 64 * 99 * row
        read = (device.counters.p2p_bytes, device.counters.host_key_bytes)
        assert read == ((2 * 64 * 99 * row, 0) if p2p else (0, 2 * 64 * 99 * row))
        assert device.capabilities.p2p is p2p
        assert device.scorer.keys == "stream"


def test_many_reads_are_in_flight_and_the_ring_is_never_exceeded(tmp_path, monkeypatch):
    """All pieces of the ring are being read at once, before the first is scored."""
    barrier, counts = threading.Barrier(3), []
    real = StreamedKeys.fetch

    def fetch(self, stream, piece):
        counts.append(self.ring.available())
        return real(self, stream, piece)

    device = open_kernel(tmp_path, keys="stream", piece_bytes=64 << 10, ring=3)
    with contextlib.closing(Twins(tmp_path, device)) as twins:
        twins.append(A, 64 * 8 * 6)
        log, _ = device.scorer._keys.files
        read = log.file.read
        waited = []

        def together(data, offset):
            if len(waited) < 3:
                waited.append(offset)
                barrier.wait(timeout=60)  # passes only when three reads are under way
            return read(data, offset)

        monkeypatch.setattr(StreamedKeys, "fetch", fetch)
        monkeypatch.setattr(log.file, "read", together)
        twins.check(A, twins.query(), [Run(0, 64 * 8 * 6)])
    assert False in counts


def test_keys_are_there_to_be_read_as_soon_as_they_are_appended(tmp_path):
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, keys="stream"))) as twins:
        for i in range(20):
            twins.append(A, 64, seed=i)
            twins.check(A, twins.query(i), [Run(0, 64 * (i + 1))])


def test_a_key_log_that_was_cut_short_is_an_error_that_names_it(tmp_path):
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, keys="stream"))) as twins:
        twins.append(B, 64 * 40)
        twins.device.flush()
        os.ftruncate(twins.device.scorer._keys.files[1].file.fd, 4096)
        with pytest.raises(CorruptRecordError, match="key log of layer 1, sequence 1 is shorter"):
            list(twins.device.submit(B, twins.query(), [Run(0, 64 * 40)]))


def test_a_full_disk_is_told_by_the_next_call(tmp_path, monkeypatch):
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, keys="stream"))) as twins:
        twins.append(A, 640)
        file = twins.device.scorer._keys.files[0].file

        def no_room(*_):
            raise ColdPoolFull("the cold folder is full")

        monkeypatch.setattr(file, "write", no_room)
        twins.append(A, 64)
        with pytest.raises(ColdPoolFull):
            twins.device.flush()
        with pytest.raises(ColdPoolFull):
            list(twins.device.submit(A, twins.query(), [Run(0, 704)]))


def test_cancelled_reads_give_their_buffers_back_and_those_that_wait_are_never_made(tmp_path, monkeypatch):
    with contextlib.closing(Twins(tmp_path, open_kernel(tmp_path, keys="stream", piece_bytes=1, ring=2))) as twins:
        twins.append(A, 64 * 30)
        twins.device.flush()
        file = twins.device.scorer._keys.files[0].file
        read, offsets = file.read, []

        def counted(data, offset):
            offsets.append(offset)
            return read(data, offset)

        monkeypatch.setattr(file, "read", counted)
        tickets = [twins.device.submit(A, twins.query(), [Run(0, 64 * 30)]) for _ in range(10)]
        for ticket in tickets:
            ticket.cancel()
        twins.check(A, twins.query(), [Run(0, 64 * 30)])
        assert list(tickets[0]) == []
        assert len(offsets) <= 30 + 2
