"""The recording engine: attends to everything, in memory, and remembers what a prompt's attention computed.

What it remembers is all that another engine needs to cache the same prompt (``Engine.admit``): a prompt is then read by
the model once, whatever the number of policies that are compared on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from hillinfer.csd.contract import Stream
from hillinfer.kv.attention import attend, merge
from hillinfer.kv.geometry import Geometry
from hillinfer.pipeline.contract import Engine
from hillinfer.pipeline.trace import Trace
from hillinfer.policies.base import Policy
from hillinfer.store.ledger import Ledger

_GROWTH = 1024  # tokens


@dataclass(frozen=True)
class Recording(Policy):
    """Everything attended and everything remembered, queries too: for studies, not for long contexts."""

    name: ClassVar[str] = "recording"
    source: ClassVar[str] = "exact attention"
    keeps: ClassVar[str] = "queries, keys and values, all in the memory of the compute device"


@dataclass(frozen=True)
class Chunk:
    """Consecutive tokens of a prompt in one layer; the arguments of ``Engine.admit``."""

    query: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor
    lse: torch.Tensor
    scaling: float


class _Record:
    """One stream: keys and values [H, room, d] that grow, and the queries of its prompt."""

    def __init__(self, geometry: Geometry, device: torch.device) -> None:
        shape = (geometry.kv_heads, 0, geometry.head_dim)
        self._keys = torch.empty(shape, dtype=geometry.dtype, device=device)
        self._values = torch.empty_like(self._keys)
        self.tokens = 0
        self.queries: list[tuple[int, torch.Tensor, torch.Tensor, float]] = []

    def rows(self, first: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self._keys[:, first:stop], self._values[:, first:stop]

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> None:
        first, self.tokens = self.tokens, self.tokens + keys.shape[1]
        if self.tokens > self._keys.shape[1]:
            more = max(_GROWTH, self._keys.shape[1] // 2) + self.tokens - self._keys.shape[1]
            self._keys, self._values = (
                torch.cat([old, old.new_empty(old.shape[0], more, old.shape[2])], 1)
                for old in (self._keys, self._values)
            )
        self._keys[:, first : self.tokens] = keys
        self._values[:, first : self.tokens] = values


class RecordingEngine(Engine):
    """Exact attention over records that only grow."""

    def __init__(self, geometry: Geometry, policy: Policy, *, sequences: int, device: torch.device) -> None:
        self.geometry, self.policy, self.sequences = geometry, policy, sequences
        self.trace, self.ledger = Trace(), Ledger()
        self._records = {
            stream: _Record(geometry, device)
            for stream in map(Stream._make, itertools.product(range(geometry.layers), range(sequences)))
        }

    def expect(self, tokens: int) -> None:
        """Whatever fits into memory."""

    def exact(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
        *,
        decoding: bool = False,
    ) -> torch.Tensor:
        record = self._records[Stream(layer, sequence)]
        grouped = self.geometry.group_heads(query)
        parts = [attend(grouped, keys, values, scaling, causal=True)]
        if record.tokens:
            parts.append(attend(grouped, *record.rows(0, record.tokens), scaling))
        out, lse = merge(parts)
        if decoding:
            self._append(record, keys, values)
        else:
            self.admit(layer, sequence, grouped, keys, values, lse.float(), scaling)
        return out.flatten(0, 1)

    def admit(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        lse: torch.Tensor,
        scaling: float,
    ) -> None:
        record = self._records[Stream(layer, sequence)]
        record.queries.append((record.tokens, query.clone(), lse, scaling))
        self._append(record, keys, values)

    def decode(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        if self.witness is not None:
            self.witness(layer, sequence, [np.arange(self._records[Stream(layer, sequence)].tokens)])
        return self.exact(layer, sequence, query, keys, values, scaling, decoding=True)

    def prompt(self, layer: int, sequence: int) -> Iterator[Chunk]:
        """The prompt of a stream again, chunk by chunk."""
        record = self._records[Stream(layer, sequence)]
        for first, query, lse, scaling in record.queries:
            yield Chunk(query, *record.rows(first, first + query.shape[2]), lse, scaling)

    def _append(self, record: _Record, keys: torch.Tensor, values: torch.Tensor) -> None:
        record.append(keys, values)
        self.ledger.change(device=keys.nbytes + values.nbytes)

    def rewind(self, layer: int, sequence: int, tokens: int) -> None:
        """Forget what came after ``tokens`` of a stream's prompt, which are whole chunks of it."""
        record = self._records[Stream(layer, sequence)]
        record.queries = [chunk for chunk in record.queries if chunk[0] < tokens]
        keys, values = record.rows(tokens, record.tokens)
        self.ledger.change(device=-keys.nbytes - values.nbytes)
        record.tokens = tokens

    def settled_ledger(self) -> Ledger:
        return self.ledger

    def close(self) -> None:
        self._records = {}
