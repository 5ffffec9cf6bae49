"""Reserved memory: zeros that take no memory, and stay what they are while they move into huge pages."""

from __future__ import annotations

import numpy as np
import psutil
import torch

from hillinfer.store.reserve import LargePages, reserve


def test_reserved_memory_is_zero_and_taken_as_it_is_written():
    before = psutil.Process().memory_info().rss
    memory = reserve(1 << 20, 4096, torch.uint8)
    assert psutil.Process().memory_info().rss - before < 16 << 20
    assert memory.shape == (1 << 20, 4096)
    assert memory.data_ptr() % (2 << 20) == 0
    assert int(memory[-1].sum()) == 0


def test_what_is_written_stays_while_it_moves_into_huge_pages():
    memory = reserve(3000, 4096, torch.uint8).numpy()
    pages, rng = LargePages(memory), np.random.default_rng(0)
    expected = rng.integers(0, 256, (3000, 4096), np.uint8)
    for stop in (1, 100, 300, 301, 800, 1700, 3000):
        memory[:stop] = expected[:stop]
        pages.filled(stop * 4096)
        assert np.array_equal(memory[:stop], expected[:stop])


def test_small_memory_needs_no_large_pages():
    for rows in (0, 1, 100):
        memory = reserve(rows, 64, torch.float32)
        LargePages(memory.view(torch.uint8).numpy()).filled(rows * 256)
