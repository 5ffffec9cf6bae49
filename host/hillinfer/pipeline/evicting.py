"""The evicting engine: rows per KV head in device memory, as many as the policy's budget allows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import psutil
import torch

from hillinfer.config import StoreSettings
from hillinfer.csd.contract import Stream
from hillinfer.errors import MemoryBudgetError, SettingError
from hillinfer.kv.attention import Partial, attend, attend_weighed, merge
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.contract import Engine
from hillinfer.pipeline.heap import Heap
from hillinfer.pipeline.trace import Trace
from hillinfer.policies.evicting import Chunk, EvictingPolicy, Evictor
from hillinfer.store.kept_rows import FREE, Held, KeptRows
from hillinfer.store.ledger import Ledger

_PIECE = 8192  # rows attended at a time: bounds the logits where no fused kernel does without them


@dataclass
class _Work:
    """A stream's rows, and what the policy remembers about it."""

    rows: KeptRows
    evictor: Evictor
    counted: int = 0


class EvictingEngine(Engine):
    """Rows that the policy keeps, and nothing else; no file, no storage device.

    While a prompt is read all of its rows are held, so the peak is the prompt's KV; afterwards each layer's rows stay
    within its budget. The row of the token being decoded is held beside it until the step is over.
    """

    policy: EvictingPolicy

    def __init__(
        self,
        geometry: Geometry,
        policy: EvictingPolicy,
        settings: StoreSettings,
        *,
        sequences: int,
        max_tokens: int,
        device: torch.device,
        expected: int = 0,
    ) -> None:
        self.geometry, self.policy, self.sequences = geometry, policy, sequences
        self.trace, self.ledger, self._heap = Trace(enabled=settings.trace), Ledger(), Heap()
        self._device = device
        self.expect(expected)
        self._works = {
            stream: _Work(KeptRows(geometry, max_tokens, device), policy.open(geometry))
            for stream in map(Stream._make, itertools.product(range(geometry.layers), range(sequences)))
        }
        self._reading = [True] * sequences
        self._budgets: dict[int, tuple[int, list[int]]] = {}

    def expect(self, tokens: int) -> None:
        self.policy.check(tokens)
        whole = self.geometry.kv_bytes(tokens, self.sequences)
        memory = psutil.virtual_memory().total
        if self._device.type == "cpu" and whole > memory:
            raise MemoryBudgetError(
                f"the policy {self.policy.name} holds a whole prompt until it is over: {tokens} tokens in each of "
                f"{self.sequences} sequences take {whole / 1e9:.1f} GB, and this machine has {memory / 1e9:.1f} GB: "
                "shorten the prompt, or choose a policy that keeps everything in tiers (--policy hillinfer)"
            )

    def exact(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
        *,
        decoding: bool = False,  # every token is kept where it was computed
    ) -> torch.Tensor:
        """Every row stays until the prompt is over, whatever the size of its chunks."""
        work = self._works[Stream(layer, sequence)]
        work.rows.order()
        grouped = self.geometry.group_heads(query)
        with self.trace.span("attend"):
            parts = self._attend_kept(work.rows, grouped, scaling)
            out, lse = merge([*parts, attend(grouped, keys, values, scaling, causal=True)])
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
        work = self._works[Stream(layer, sequence)]
        work.rows.order()
        work.rows.append(keys, values)
        with self.trace.span("read"):
            work.evictor.read(Chunk(query, lse, scaling), work.rows.held)
        self._reading[sequence] = True
        self._account(work)

    def decode(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        if self._reading[sequence]:
            self._compress(sequence)
        work = self._works[Stream(layer, sequence)]
        rows = work.rows
        if self.witness is not None:
            self.witness(layer, sequence, _positions(rows.held))
        rows.append(keys, values)
        grouped, held = self.geometry.group_heads(query), rows.held
        with self.trace.span("attend"):
            weights = None
            if work.evictor.weighs:
                out, weights = attend_weighed(grouped, held.keys, held.values, scaling, held.positions != FREE)
            else:
                out, _ = merge(self._attend_kept(rows, grouped, scaling))
        with self.trace.span("evict"):
            work.evictor.step(held, weights)
            if self.policy.bounded:
                self._evict(work, held, self._budget(layer, sequence, rows.tokens))
        self._account(work)
        return out.flatten(0, 1)

    def _attend_kept(self, rows: KeptRows, query: torch.Tensor, scaling: float) -> list[Partial]:
        """Attention of a query [H, G, T, d] to all rows kept, piece by piece; heads apart where they keep unequally."""
        parts = []
        for first in range(0, max(rows.counts), _PIECE):
            if rows.even:
                held = rows.held
                piece = slice(first, first + _PIECE)
                parts.append(attend(query, held.keys[:, piece], held.values[:, piece], scaling))
                continue
            outs = []
            for head in range(len(rows.counts)):
                keys, values = rows.head(head, first, first + _PIECE)
                outs.append(_attend_head(query[head : head + 1], keys[None], values[None], scaling))
            parts.append((torch.cat([out for out, _ in outs]), torch.cat([lse for _, lse in outs])))
        return parts

    def _budget(self, layer: int, sequence: int, cached: int) -> int:
        """Rows per head of this layer, when its sequence has ``cached`` tokens."""
        known = self._budgets.get(sequence)
        if known is None or known[0] != cached:
            evictors = [self._works[Stream(each, sequence)].evictor for each in range(self.geometry.layers)]
            known = self._budgets[sequence] = (cached, self.policy.layer_budgets(evictors, cached))
        return known[1][layer]

    def _compress(self, sequence: int) -> None:
        """The prompt is over, in every layer: what is too much is dropped."""
        self._reading[sequence] = False
        self._budgets.pop(sequence, None)
        works = [self._works[Stream(layer, sequence)] for layer in range(self.geometry.layers)]
        with self.trace.span("compress"):
            for work in works:
                work.evictor.finish(work.rows.held)
            for layer, work in enumerate(works):
                self._evict(work, work.rows.held, self._budget(layer, sequence, work.rows.tokens))
                self._account(work)
        self._heap.tidy(self.ledger.tiers.device.bytes)

    def _evict(self, work: _Work, held: Held, budget: int) -> None:
        """Drop what is over ``budget`` rows per head of those held."""
        rows, heads = work.rows, self.geometry.kv_heads
        over = held.rows - heads * budget
        if over <= 0:
            return
        if over == heads and rows.even and type(work.evictor).keep is Evictor.keep:  # the usual step: one for one
            rows.drop_one(_lowest(work.evictor.scores(held, budget), held.positions))
            return
        slots = work.evictor.keep(held, budget)
        kept = sum(len(each) for each in slots)
        if kept > heads * budget:
            raise SettingError(
                f"the policy {self.policy.name} kept {kept} rows of a layer whose {heads} heads may keep {budget} each"
            )
        meanwhile = rows.keep(slots)
        self.ledger.change(device=meanwhile - work.counted)
        work.counted = meanwhile

    def _account(self, work: _Work) -> None:
        """Tell the ledger what this stream holds now."""
        nbytes = work.rows.nbytes
        self.ledger.change(device=nbytes - work.counted)
        work.counted = nbytes

    def settled_ledger(self) -> Ledger:
        rows = [work.rows for work in self._works.values()]
        lost = sum(len(each.counts) * each.tokens - sum(each.counts) for each in rows)
        self.ledger.dropped_tokens = lost / max(1, sum(len(each.counts) for each in rows))
        return self.ledger

    def close(self) -> None:
        self._works = {}


def _attend_head(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scaling: float) -> Partial:
    """``attend`` for a head that may have no rows in this piece."""
    if keys.shape[1]:
        return attend(query, keys, values, scaling)
    return torch.zeros_like(query), query.new_full(query.shape[:-1], -torch.inf, dtype=torch.float32)


def _lowest(scores: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """The slot int64 [H] of each head's lowest score [H, n], of equal ones the oldest."""
    least = scores.amin(1, keepdim=True)
    return positions.masked_fill(scores > least, FREE).argmin(1)


def _positions(held: Held) -> list[Positions]:
    """Ascending positions by head."""
    return [np.sort(each[:count].cpu().numpy()) for each, count in zip(held.positions, held.counts, strict=True)]
