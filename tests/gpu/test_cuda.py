"""The CUDA path, on a real GPU: `make test-gpu`. Everything else about it is tested on the CPU, with the same code.

Takes about two minutes where there is a GPU, and skips where there is none.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import DynamicCache

from hillinfer import HillInfer, HillInferCache
from hillinfer.config import Budget, StoreSettings
from hillinfer.generation import cache_keyword
from hillinfer.kv.device_copies import Arriving, send
from hillinfer.kv.geometry import TILE, Geometry
from hillinfer.kv.row_attention import attend_rows
from hillinfer.pipeline.opening import open_engine
from hillinfer.policies import create
from tests.tiny import random_ids, tiny

if not torch.cuda.is_available():
    pytest.skip(
        "no GPU that this torch sees"
        if torch.version.cuda
        else "this torch is built without CUDA (TORCH_INDEX=https://download.pytorch.org/whl/cu126 make setup)",
        allow_module_level=True,
    )

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)
SCALING = 0.25
NEW = 24


# ---- copies


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_sent_are_the_rows_taken_however_many_are_on_their_way(dtype):
    """Pinned memory is used again as soon as nobody refers to it, and never before its copy is over."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(5000, 512, generator=generator).to(dtype)
    indices = [torch.randint(5000, (count,), generator=generator) for count in (0, 1, 7, 3000) * 50]
    busy = torch.randn(4096, 4096, device=CUDA)
    sent = []
    for index in indices:
        busy = busy @ busy * 1e-4  # the computing stream lags behind
        sent.append(send(CUDA, rows, index, index, torch.tensor([True, False])))
    for index, (taken, beside, flags) in zip(indices, sent, strict=True):
        torch.testing.assert_close(taken.cpu(), rows[index], rtol=0, atol=0)
        torch.testing.assert_close(beside.cpu(), index, rtol=0, atol=0)
        assert flags.tolist() == [True, False]


def test_what_arrives_is_what_was_there_when_it_was_asked_for():
    values = torch.zeros(1000, device=CUDA)
    arriving = []
    for _ in range(200):
        values += 1
        arriving.append(Arriving(values))
    for step, each in enumerate(arriving):
        assert (each.wait() == step + 1).all()


# ---- attention of selected rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("heads", "group", "dim"), [(3, 3, 64), (8, 4, 128), (32, 1, 128)])
def test_attention_of_rows_from_both_memories_is_the_softmax(dtype, heads, group, dim):
    generator = torch.Generator().manual_seed(heads)
    geometry = Geometry(1, heads, group, dim, dtype)
    keys, values = (torch.randn(heads, 3000, dim, generator=generator).to(dtype) for _ in range(2))
    rows = geometry.pack_rows(keys, values)
    query = torch.randn(heads, group, 1, dim, generator=generator).to(dtype)
    order = torch.randperm(3000, generator=generator)[:1200]
    ranks = np.arange(1200)
    seen = torch.rand(heads, 1200, generator=generator) < 0.5
    seen[:, -1] = True
    attention = attend_rows(geometry, query.to(CUDA), 0.125, 1200)
    on_device = rows.to(CUDA)
    for source, part in ((rows, slice(0, 700)), (on_device, slice(700, 1200))):
        for head in range(heads):
            mine = np.flatnonzero(seen[head, part].numpy()) + part.start
            attention.add(source, order.numpy()[mine], ranks[mine], head)
    out, lse = attention.finish()
    logits = torch.einsum("hgd,hnd->hgn", query[:, :, 0].double(), keys[:, order].double()) * 0.125
    logits = logits.masked_fill(~seen[:, None], -math.inf)
    expected = torch.einsum("hgn,hnd->hgd", logits.softmax(-1), values[:, order].double())
    tolerance = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 2e-2}[dtype]
    assert out.device.type == "cuda"
    torch.testing.assert_close(out[:, :, 0].cpu().double(), expected, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(lse.cpu().numpy(), logits.logsumexp(-1).numpy(), atol=tolerance * 10)


# ---- the engine


def _engine(folder, device, policy, geometry, sequences):
    store = StoreSettings(hot_bytes=Budget.parse("30%"), cold_dir=folder)
    return open_engine(geometry, policy, store, sequences=sequences, max_tokens=1 << 14, device=device)


def _tokens(geometry, count, generator, device):
    shape = (geometry.kv_heads, geometry.group, count, geometry.head_dim)
    query = torch.randn(shape, generator=generator) * 2
    keys, values = (torch.randn(shape[0], count, shape[3], generator=generator) for _ in range(2))
    return query.flatten(0, 1).to(device), keys.to(device), values.to(device)


@pytest.mark.parametrize("policy", ["hillinfer", "quest", "infinigen", "shadowkv", "h2o", "snapkv"])
@pytest.mark.parametrize("sequences", [1, 4])
def test_an_engine_gives_what_it_gives_on_the_cpu(tmp_path, policy, sequences):
    """Same tensors into both. A key's cast may round the other way, and a token of equal merit be taken: so 95 %."""
    geometry = Geometry(2, 2, 3, 64, torch.float32)
    outs, tiers = {}, {}
    for device in (CPU, CUDA):
        engine = _engine(tmp_path, device, create(policy, budget="25%"), geometry, sequences)
        generator = torch.Generator().manual_seed(1)
        got = []
        for count in (700, 1, 200, *[1] * 100):
            for sequence in range(sequences):
                for layer in range(geometry.layers):
                    run = engine.decode if count == 1 else engine.exact
                    out = run(layer, sequence, *_tokens(geometry, count, generator, device), SCALING)
                    assert out.device.type == device.type
                    got.append(out.cpu())
        outs[device.type], tiers[device.type] = got, engine.settled_ledger().tiers
        engine.close()
    close = [torch.allclose(a, b, atol=1e-3, rtol=1e-3) for a, b in zip(outs["cpu"], outs["cuda"], strict=True)]
    assert np.mean(close) >= 0.95
    assert tiers["cpu"].device.bytes == tiers["cuda"].device.bytes
    assert tiers["cpu"].cold.bytes == tiers["cuda"].cold.bytes


@pytest.mark.parametrize("batch", [1, 4, 12])
def test_a_step_waits_for_its_query_and_for_nothing_else(tmp_path, monkeypatch, batch):
    """torch itself raises for a call that would wait for the device; waits for an event are counted."""
    geometry = Geometry(2, 8, 4, 128, torch.float16)
    engine = _engine(tmp_path, CUDA, HillInfer(alpha=0.1), geometry, batch)
    generator = torch.Generator().manual_seed(2)
    streams = [(layer, sequence) for layer in range(geometry.layers) for sequence in range(batch)]

    def tokens(count):
        return [x.to(torch.float16) for x in _tokens(geometry, count, generator, CUDA)]

    for layer, sequence in streams:
        engine.exact(layer, sequence, *tokens(1500), SCALING)
        engine.decode(layer, sequence, *tokens(1), SCALING)
    waits = []
    synchronize = torch.cuda.Event.synchronize
    monkeypatch.setattr(
        torch.cuda.Event, "synchronize", lambda event: (waits.append(not event.query()), synchronize(event))[1]
    )
    steps = 20  # no tile leaves the device tier in them: 1501 tokens are 29 behind a whole tile
    given = [[tokens(1) for _ in streams] for _ in range(steps)]
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step in given:
            for (layer, sequence), each in zip(streams, step, strict=True):
                engine.decode(layer, sequence, *each, SCALING)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert sum(waits) <= steps * len(streams)
    engine.close()


# ---- a model


def _decode(model, ids, cache, tokens):
    """Logits [B, 1 + NEW, vocab] of a prompt's end and of NEW given tokens [B, NEW], one at a time."""
    with torch.inference_mode():
        logits = [model(ids, **{cache_keyword(model): cache}).logits[:, -1]]
        for step in range(NEW):
            logits.append(model(tokens[:, step : step + 1], **{cache_keyword(model): cache}).logits[:, -1])
    return torch.stack(logits, 1).cpu()


@pytest.mark.parametrize("batch", [1, 4, 12])
@pytest.mark.parametrize("alpha", [1.0, 0.2])
def test_a_model_gives_the_tokens_it_gives_on_the_cpu(tmp_path, batch, alpha):
    ids, tokens = random_ids(600, batch=batch), random_ids(NEW, batch=batch, seed=1)
    logits = {}
    for device in (CPU, CUDA):
        model = tiny("llama", kv_heads=2).to(device)
        with HillInferCache(model, alpha=alpha, hot_bytes="60%", cold_dir=tmp_path) as cache:
            logits[device.type] = _decode(model, ids.to(device), cache, tokens.to(device))
    same = logits["cpu"].argmax(-1) == logits["cuda"].argmax(-1)
    assert same.float().mean() >= (1 if alpha == 1 else 0.98)
    close = (logits["cpu"] - logits["cuda"]).abs().amax(-1) <= 1e-2
    assert close.float().mean() >= (1 if alpha == 1 else 0.95)


@pytest.mark.parametrize("batch", [1, 4, 12])
def test_alpha_one_is_the_stock_cache(tmp_path, batch):
    ids, tokens = random_ids(600, batch=batch).to(CUDA), random_ids(NEW, batch=batch, seed=1).to(CUDA)
    model = tiny("llama", kv_heads=2).to(CUDA)
    stock = _decode(model, ids, DynamicCache(config=model.config), tokens)
    with HillInferCache(model, alpha=1, hot_bytes="60%", cold_dir=tmp_path) as cache:
        ours = _decode(model, ids, cache, tokens)
    assert torch.equal(stock.argmax(-1), ours.argmax(-1))
    torch.testing.assert_close(ours, stock, atol=1e-3, rtol=0)


def test_the_device_holds_the_newest_tokens_and_no_more(tmp_path):
    """What torch has allocated for 8,000 tokens, and 100 steps later, beside what the ledger says."""
    geometry = Geometry(4, 8, 4, 128, torch.float16)
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    engine = _engine(tmp_path, CUDA, HillInfer(alpha=0.1), geometry, 1)
    generator = torch.Generator().manual_seed(3)
    for count in (*[500] * 16, *[1] * 100):
        for layer in range(geometry.layers):
            given = [x.to(torch.float16) for x in _tokens(geometry, count, generator, CUDA)]
            (engine.decode if count == 1 else engine.exact)(layer, 0, *given, SCALING)
    del given
    tiers, tier = engine.settled_ledger().tiers, geometry.layers * 2 * TILE * geometry.row_bytes
    held = torch.cuda.memory_allocated() - before
    print(f"device {held / 1e6:.1f} MB allocated, whole KV {geometry.kv_bytes(8100, 1) / 1e6:.1f} MB, {tiers}")
    assert held <= tier + (1 << 20)
    assert tiers.device.bytes <= tier * 1.5  # with scoring keys
    assert tiers.cold.bytes >= geometry.kv_bytes(8100 - 2 * TILE, 1)
    engine.close()
    assert torch.cuda.memory_allocated() - before <= 1 << 20
