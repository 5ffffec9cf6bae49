"""The rule of the reader's requests, held against a reader that counts its own."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from hillinfer.config import StoreSettings
from hillinfer.csd.contract import Stream
from hillinfer.csd.registry import open_device
from hillinfer.kv.geometry import Geometry
from hillinfer.simulation.requests import asked

TOKENS, PAGE = 1024, 4096


@pytest.mark.parametrize("head_dim", [64, 128, 1024], ids=lambda dim: f"rows of {8 * dim} bytes")
def test_it_is_the_readers_own(head_dim: int, tmp_path) -> None:
    geometry = Geometry(1, 1, 1, head_dim, torch.float32)
    device = open_device(StoreSettings(cold_dir=tmp_path), geometry, TOKENS, lambda *_: None)
    rows = torch.randn(TOKENS, geometry.row_stride).view(torch.uint8).numpy()
    device.append(Stream(0, 0), 0, rows, None)
    device.flush()
    random = np.random.default_rng(3)
    for count in (1, 5, 40, 300, TOKENS):
        positions = np.sort(random.choice(TOKENS, count, replace=False))
        out = np.empty((count, geometry.row_bytes), np.uint8)
        ticket = device.read(Stream(0, 0), positions, out)
        ticket.wait()
        requests, read = asked(positions, geometry.row_bytes)
        least, _ = asked(positions, geometry.row_bytes, alignment=1)
        assert least <= ticket.requests <= requests <= least + 1 + least // 10
        assert 0.97 * read <= ticket.nbytes / geometry.row_bytes  # where requests end differently, gaps do
        assert ticket.nbytes <= read * geometry.row_bytes + 2 * PAGE * requests  # what alignment adds
    device.close()


def test_nothing_takes_no_request() -> None:
    assert asked(np.empty(0, np.int64), 1536) == (0, 0)
