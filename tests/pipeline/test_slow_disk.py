"""A slow disk, and one that fails, under the engine: the step waits, nothing is lost; one error, and no hang."""

from __future__ import annotations

import errno
import time

import pytest
import torch

from hillinfer.config import Budget, StoreSettings
from hillinfer.errors import ColdPoolError
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.engine import TieredEngine
from hillinfer.policies import HillInfer

GEOMETRY = Geometry(layers=2, kv_heads=2, group=2, head_dim=16, dtype=torch.float32)


def _open(folder):
    settings = StoreSettings(hot_bytes=Budget.parse("15%"), cold_dir=folder)
    policy = HillInfer(alpha=0.1, floor=8)
    return TieredEngine(GEOMETRY, policy, settings, sequences=1, max_tokens=1 << 12, device=torch.device("cpu"))


def _step(engine, generator, tokens=1):
    run = engine.decode if tokens == 1 else engine.exact
    outs = []
    for layer in range(GEOMETRY.layers):
        query = torch.randn(4, tokens, 16, generator=generator)
        keys, values = (torch.randn(2, tokens, 16, generator=generator) for _ in range(2))
        outs.append(run(layer, 0, query, keys, values, 0.25))
    return torch.stack(outs)


def _steps(engine, generator, count):
    return [_step(engine, generator) for _ in range(count)]


@pytest.mark.parametrize("engine", ["io_uring", "pool"])
def test_a_slow_disk_changes_nothing_but_time(tmp_path, monkeypatch, engine):
    runs = []
    for delay in (0, 0.002):
        if delay:
            monkeypatch.setenv("HILLINFER_IO", engine)
        opened, generator = _open(tmp_path), torch.Generator().manual_seed(0)
        if opened.csd.rows.reader.engine != engine and delay:
            pytest.skip(f"this machine has no {engine}")
        outs = [_step(opened, generator, 600)]
        if delay:
            opened.csd.rows.reader.disturb(delay=delay)
        started = time.perf_counter()
        outs += _steps(opened, generator, 15)
        assert time.perf_counter() - started > 15 * delay  # reads were waited for at every step
        assert opened.ledger.cold_read_bytes > 0
        runs.append(outs)
        opened.close()
    for fast, slow in zip(*runs, strict=True):
        assert torch.equal(fast, slow)


def test_a_disk_that_fails_while_decoding_is_one_error(tmp_path):
    engine, generator = _open(tmp_path), torch.Generator().manual_seed(0)
    _step(engine, generator, 600)
    _step(engine, generator)
    engine.csd.rows.reader.disturb(every=1, result=-errno.EIO)
    with pytest.raises(ColdPoolError, match=r"layer \d, sequence 0, token.*Input/output error\. Check the disk"):
        _steps(engine, generator, 10)
    engine.close()
