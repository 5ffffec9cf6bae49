"""An engine with a policy that keeps everything, step by step against a plain, slow oracle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from hillinfer.config import Budget, StoreSettings
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.opening import open_engine

SCALING = 0.25
DIM = 16
SHAPES = [(4, 1), (2, 3), (1, 4)]
"""(KV heads, queries per KV head): MHA, GQA, MQA."""


@dataclass
class Seen:
    """All tokens of one sequence: per layer, keys and values [H, n, d], queries [H, G, n, d], the step's query."""

    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    queries: list[torch.Tensor]
    query: list[torch.Tensor] = field(default_factory=list)

    def add(self, layer: int, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        self.keys[layer] = torch.cat([self.keys[layer], keys], 1)
        self.values[layer] = torch.cat([self.values[layer], values], 1)
        self.queries[layer] = torch.cat([self.queries[layer], query], 2)


Expected = Callable[[int, Seen], list[list[int]] | None]
"""``expected(layer, seen)``: the sets for ``seen.query[layer]``, the sequence without the new token; None: all."""


def open_policy(tmp_path, policy, geometry, *, sequences=1, hot="60%", **settings):
    store = StoreSettings(hot_bytes=Budget.parse(hot), cold_dir=tmp_path, **settings)
    return open_engine(geometry, policy, store, sequences=sequences, max_tokens=1 << 14, device=torch.device("cpu"))


def random_tokens(geometry, count, generator, *, whole=True):
    """A query [H, G, n, d], keys and values [H, n, d]; of whole numbers, whose products are exact, or of any."""
    shape = (geometry.kv_heads, geometry.group, count, geometry.head_dim)
    query = torch.randn(shape, generator=generator) * 2
    keys = torch.randn(shape[0], count, shape[3], generator=generator) * 2
    values = torch.randn(shape[0], count, shape[3], generator=generator)
    return (query.round(), keys.round(), values) if whole else (query, keys, values)


def dense(query, keys, values, sets):
    """Attention [H, G, 1, d] of a query to what each head's set names and to the newest token."""
    heads, total = keys.shape[:2]
    allowed = torch.zeros(heads, 1, 1, total, dtype=torch.bool)
    allowed[..., -1] = True
    for head in range(heads):
        allowed[head, ..., sets[min(head, len(sets) - 1)]] = True
    logits = torch.einsum("hgtd,hnd->hgtn", query, keys) * SCALING
    return torch.einsum("hgtn,hnd->hgtd", logits.masked_fill(~allowed, -torch.inf).softmax(-1), values)


def compare(
    tmp_path,
    policy,
    expected: Expected,
    shape,
    *,
    layers=2,
    sequences=1,
    chunks=(140, 1, 37),
    steps=40,
    whole=True,
    again=0,
    hot="60%",
):
    """Every step's sets and output are the oracle's; sequences have lengths of their own. Returns the number of
    steps at which something was left out.

    again   tokens of a second prompt, read in the middle
    """
    geometry = Geometry(layers, *shape, DIM, torch.float32)
    engine = open_policy(tmp_path, policy, geometry, sequences=sequences, hot=hot)
    told = {}
    engine.witness = lambda layer, sequence, sets: told.update({(layer, sequence): [s.tolist() for s in sets]})
    none = (geometry.kv_heads, 0, DIM)
    seen = [
        Seen(*([torch.empty(none)] * layers for _ in range(2)), [torch.empty(shape[0], shape[1], 0, DIM)] * layers)
        for _ in range(sequences)
    ]
    generators = [torch.Generator().manual_seed(s) for s in range(sequences)]

    def read(chunk):
        for s, one in enumerate(seen):
            for layer in range(layers):
                query, keys, values = random_tokens(geometry, chunk + 10 * s, generators[s], whole=whole)
                engine.exact(layer, s, query.flatten(0, 1), keys, values, SCALING)
                one.add(layer, query, keys, values)

    for chunk in chunks:
        read(chunk)
    selective = 0
    for step in range(steps):
        if again and step == steps // 2:
            read(again)
        for s, one in enumerate(seen):
            tokens = [random_tokens(geometry, 1, generators[s], whole=whole) for _ in range(layers)]
            one.query = [query[:, :, 0] for query, _, _ in tokens]
            for layer, (query, keys, values) in enumerate(tokens):
                length = one.keys[layer].shape[1]
                sets = expected(layer, one) or [list(range(length))]
                out = engine.decode(layer, s, query.flatten(0, 1), keys, values, SCALING)
                assert told[layer, s] == sets, f"step {step}, layer {layer}, sequence {s}"
                selective += any(len(each) < length for each in sets)
                one.add(layer, query, keys, values)
                torch.testing.assert_close(
                    out.view(*shape, 1, DIM), dense(query, one.keys[layer], one.values[layer], sets)
                )
    device, hot = engine.settled_ledger().tiers.device.bytes, engine.ledger.tiers.hot.bytes
    streams = [work.stream for work in engine._works.values()]
    index = sum(engine._chooser.nbytes(stream.id) for stream in streams)
    rows = sum(stream.device_tier.nbytes for stream in streams), sum(stream.hot_pool.nbytes for stream in streams)
    assert (device, hot) == ((rows[0], rows[1] + index) if policy.in_dram else (rows[0] + index, rows[1]))
    assert engine.ledger.host_scored == engine.ledger.device_scored == engine.csd.counters.launches == 0
    engine.close()
    return selective


def newest_first(scores, count):
    """Places of the ``count`` highest scores, ascending; of equal ones the newest."""
    order = sorted(range(len(scores)), key=lambda i: (scores[i], i), reverse=True)
    return sorted(order[:count])
