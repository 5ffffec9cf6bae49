"""A plain, slow memory that drops tokens, held against the engine at every step of a tiny model.

A run is recorded where the model meets the engine: queries, keys, values, and what came back. The oracle replays them:
one token, one head, one softmax row after another, over lists of positions. It must attend to the same tokens and come
to the same output, at every step of every layer and sequence.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch

from hillinfer import HillInferCache
from hillinfer.generation import cache_keyword
from tests.tiny import PAD, random_ids, tiny

NEW = 12
LENGTHS = (60, 37, 48)
KINDS = [(kv_heads, batch) for kv_heads in (4, 2, 1) for batch in (1, 3)]
"""MHA, GQA and MQA, alone and in a batch with left padding."""


@dataclass
class Call:
    """What one layer and sequence was asked, and its answer; ``sets`` if it was a decode step."""

    layer: int
    sequence: int
    query: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    scaling: float
    out: torch.Tensor
    sets: list | None


def record(policy, kv_heads, batch, *, new=NEW, family="llama"):
    """Every call of a greedy run, in order."""
    model = tiny(family, kv_heads=kv_heads)
    lengths = LENGTHS[:batch]
    ids = torch.full((batch, max(lengths)), PAD)
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, -length:] = random_ids(length, seed=row)[0]
        mask[row, -length:] = 1
    calls: list[Call] = []
    seen: list = []
    with HillInferCache(model, policy) as cache:
        engine = cache.engine(batch)
        engine.witness = lambda layer, sequence, sets: seen.append((layer, sequence, [s.tolist() for s in sets]))
        for name in ("exact", "decode"):
            setattr(engine, name, _recording(getattr(engine, name), calls, seen))
        keywords = {cache_keyword(model): cache, "max_new_tokens": new, "do_sample": False, "pad_token_id": PAD}
        model.generate(ids, attention_mask=mask, **keywords)
    return calls


def _recording(run, calls, seen):
    def recorded(layer, sequence, query, keys, values, scaling, **keywords):
        seen.clear()
        out = run(layer, sequence, query, keys, values, scaling, **keywords)
        sets = None
        if seen:
            [(seen_layer, seen_sequence, sets)] = seen
            assert (seen_layer, seen_sequence) == (layer, sequence)
        calls.append(Call(layer, sequence, query.clone(), keys.clone(), values.clone(), scaling, out.clone(), sets))
        return out

    return recorded


class Plain:
    """One stream: every token ever seen, and the positions that each head still has."""

    def __init__(self, heads, group):
        self.heads, self.group = heads, group
        self.queries, self.keys, self.values = [], [], []
        self.kept = [[] for _ in range(heads)]
        self.start()

    def start(self):
        """What the method remembers, empty."""

    def row(self, head, query, positions):
        """The softmax row of one query [d] over these positions."""
        keys = torch.stack([self.keys[p][head] for p in positions])
        return (keys @ query * self.scaling).softmax(0)

    def attended(self, head, member, position, positions, row):
        """A query of this head and member of its group attended to ``positions`` with weights ``row``."""

    def finish(self):
        """The prompt is over."""

    def ranks(self, head, budget):
        """A score for each position of ``self.kept[head]``; the lowest go, of equal ones the oldest."""
        raise NotImplementedError

    @staticmethod
    def shares(streams, mean, cached):  # noqa: ARG004
        """Tokens per head of every layer."""
        return [mean] * len(streams)

    def take(self, call):
        """Attend to the call's tokens one after the other, and keep them; the output [H·G, T, d]."""
        self.scaling = call.scaling
        query = call.query.reshape(self.heads, self.group, *call.query.shape[1:])
        outs = []
        for t in range(query.shape[2]):
            position = len(self.keys)
            self.queries.append(query[:, :, t])
            self.keys.append(call.keys[:, t])
            self.values.append(call.values[:, t])
            out = torch.empty(self.heads, self.group, query.shape[-1])
            for head in range(self.heads):
                self.kept[head].append(position)
                values = torch.stack([self.values[p][head] for p in self.kept[head]])
                for member in range(self.group):
                    row = self.row(head, query[head, member, t], self.kept[head])
                    out[head, member] = row @ values
                    self.attended(head, member, position, list(self.kept[head]), row)
            outs.append(out.flatten(0, 1))
        return torch.stack(outs, 1)

    def shrink(self, budget):
        for head in range(self.heads):
            scores = self.ranks(head, budget)
            order = sorted(range(len(scores)), key=lambda i: (scores[i], self.kept[head][i]), reverse=True)
            self.kept[head] = sorted(self.kept[head][i] for i in order[:budget])


def check(calls, plain, budget):
    """Replay calls; ``plain(heads, group)`` makes a stream, ``budget(cached)`` is the mean over layers."""
    layers = 1 + max(call.layer for call in calls)
    streams = defaultdict(lambda: [plain(*_shape(calls)) for _ in range(layers)])
    reading = defaultdict(lambda: True)
    decoded = 0
    for call in calls:
        mine = streams[call.sequence]
        stream = mine[call.layer]
        if call.sets is not None and reading[call.sequence]:
            reading[call.sequence] = False
            for each in mine:
                each.finish()
            cached = len(stream.keys)
            for each, share in zip(mine, plain.shares(mine, budget(cached), cached), strict=True):
                each.shrink(share)
        if call.sets is not None:
            assert call.sets == stream.kept, f"layer {call.layer}, sequence {call.sequence}"
        torch.testing.assert_close(call.out, stream.take(call), atol=1e-4, rtol=1e-4)
        if call.sets is not None:
            cached = len(stream.keys)
            stream.shrink(plain.shares(mine, budget(cached), cached)[call.layer])
            decoded += 1
    return streams, decoded


def _shape(calls):
    heads = calls[0].keys.shape[0]
    return heads, calls[0].query.shape[0] // heads
