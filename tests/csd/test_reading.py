"""Both readers against a plain file: what they read, and what they say when they cannot."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hillinfer.csd.software import reading
from hillinfer.csd.software.files import ColdFile, aligned_buffer
from hillinfer.errors import ColdPoolError

SIZE = 1 << 20


@pytest.fixture(params=["kernel", "threads"])
def reader(request):
    with ThreadPoolExecutor(4) as threads:
        made = reading.KernelReader() if request.param == "kernel" else reading.ThreadReader(threads, 4)
        with contextlib.closing(made):
            yield made


@pytest.fixture
def file(tmp_path):
    file = ColdFile(tmp_path, direct=True)
    content = aligned_buffer(SIZE)
    content[:] = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8)
    file.write(content, 0)
    yield file, content
    file.close()


def _start(reader, fd, align, seed, count):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, count) * align
    offsets = rng.integers(0, SIZE // align - 9, count) * align
    buffer = aligned_buffer(int(lengths.sum()))
    return reader.start(fd, offsets, lengths, buffer), offsets, lengths, buffer


def test_many_batches_at_once_waited_for_in_any_order(reader, file):
    cold, content = file
    batches = [_start(reader, cold.fd, cold.alignment, seed, count) for seed, count in enumerate([1, 100, 700, 2, 0])]
    for pending, offsets, lengths, buffer in reversed(batches):
        pending.wait()
        expected = [content[offset : offset + length] for offset, length in zip(offsets, lengths, strict=True)]
        np.testing.assert_array_equal(buffer, np.concatenate([content[:0], *expected]))


def test_beyond_the_end_and_on_a_file_that_is_gone(reader, file):
    cold, _ = file
    end = np.array([SIZE - cold.alignment]), np.array([2 * cold.alignment])
    with pytest.raises(ColdPoolError, match="shorter than what was written"):
        reader.start(cold.fd, *end, aligned_buffer(2 * cold.alignment)).wait()
    closed = os.dup(cold.fd)
    os.close(closed)
    with pytest.raises(ColdPoolError, match="Bad file descriptor"):
        reader.start(closed, np.array([0]), np.array([512]), aligned_buffer(512)).wait()
    _start(reader, cold.fd, cold.alignment, 1, 10)[0].wait()  # and it goes on


def test_a_kernel_without_aio_is_served_by_threads(monkeypatch):
    monkeypatch.setattr(reading, "_CALLS", {})
    with ThreadPoolExecutor(1) as threads:
        otherwise = reading.ThreadReader(threads, 1)
        assert reading.open_reader(otherwise) is otherwise
