"""The tiered engine: policy × store × pipeline. Knows queries, keys and values; knows no model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from hillinfer.config import StoreSettings
from hillinfer.csd.contract import Device, Stream
from hillinfer.csd.registry import open_device
from hillinfer.errors import DeviceError
from hillinfer.kv.attention import Partial, attend, merge
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.row_attention import attend_rows
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.contract import Engine
from hillinfer.pipeline.evaluate import Evaluator
from hillinfer.pipeline.heap import Heap
from hillinfer.pipeline.trace import Trace
from hillinfer.policies.base import PerHead, SelectingPolicy
from hillinfer.store.capacity import Capacity
from hillinfer.store.ledger import Ledger
from hillinfer.store.token_stream import Selection, TokenStream, make_pieces

_KEY_FORMAT = "int8"
_WINDOW = 16  # last queries of a prompt, whose selections stand for the history that a fresh hit-rate table lacks


@dataclass
class _Work:
    """A stream and what the engine remembers about it between steps."""

    stream: TokenStream
    normaliser: PerHead | None = None
    window: list[tuple[npt.NDArray[np.float32], PerHead]] = field(default_factory=list)
    behind: Callable[[], None] | None = None

    def ready(self) -> TokenStream:
        """The stream, once what was put off behind its last step is done."""
        if self.behind is not None:
            behind, self.behind = self.behind, None
            behind()
        return self.stream


class TieredEngine(Engine):
    """Everything is kept, in three tiers; a step attends to what the policy selects of it.

    sequences    the batch size
    max_tokens   most tokens a sequence may ever have; memory for tables and pools is reserved for it, not taken
    expected     tokens a sequence will have as far as is known: budgets must do for them
    """

    policy: SelectingPolicy
    csd: Device

    def __init__(
        self,
        geometry: Geometry,
        policy: SelectingPolicy,
        settings: StoreSettings,
        *,
        sequences: int,
        max_tokens: int,
        device: torch.device,
        expected: int = 0,
    ) -> None:
        self.geometry, self.policy, self.sequences = geometry, policy, sequences
        self.trace = Trace(enabled=settings.trace)
        self.ledger = Ledger()
        self._heap = Heap()
        newest = settings.device_bytes
        self.capacity = Capacity(
            geometry, sequences, settings.hot_bytes, newest.nbytes if newest else None, pinned=policy.attended
        )
        self.capacity.check(expected, self._working_set)  # before memory is reserved
        self.csd = open_device(settings.device, geometry, settings.cold_dir, max_tokens, self.trace.record)
        try:
            if _KEY_FORMAT not in self.csd.capabilities.key_formats:
                raise DeviceError(f"the device {self.csd.capabilities.name} cannot score {_KEY_FORMAT} keys")
            self._evaluator = Evaluator(self.csd, self.ledger, self.trace)
            self._behind: list[_Work] = []
            pieces = make_pieces(geometry)
            self._works = {
                stream: _Work(
                    TokenStream(
                        stream,
                        geometry,
                        self.csd,
                        self.capacity,
                        self.ledger,
                        reserve_tokens=max_tokens,
                        key_format=_KEY_FORMAT,
                        device=device,
                        pieces=pieces,
                    )
                )
                for stream in map(Stream._make, itertools.product(range(geometry.layers), range(sequences)))
            }
        except BaseException:
            self.csd.close()
            raise

    def expect(self, tokens: int) -> None:
        self.policy.check(tokens)
        self.capacity.check(tokens, self._working_set)
        self.csd.check_room(tokens, self.capacity.sequences)

    def _working_set(self, tokens: int) -> int:
        """Rows of a stream brought together at once; exact attention goes piece by piece."""
        return 0 if self.policy.exact(tokens) else self.policy.attended(tokens)

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
        """Rows of any tier are brought in piece by piece, so that memory does not grow with the context."""
        work = self._works[Stream(layer, sequence)]
        stream = work.ready()
        grouped = query.reshape(self.geometry.kv_heads, self.geometry.group, *query.shape[1:])
        total: Partial | None = None
        for rows in stream.pieces():
            part = attend(grouped, *self.geometry.unpack_rows(rows.to(query.device)), scaling)
            total = part if total is None else merge([total, part])
        own = attend(grouped, keys, values, scaling, causal=True)
        out, lse = own if total is None else merge([total, own])
        with self.trace.span("store"):
            if decoding:
                stream.append(self.geometry.pack_rows(keys, values))
            else:
                stream.append_chunk(keys, values)
        self._remember(work, grouped, lse)
        self._tidy()
        return out.flatten(0, 1)

    def _remember(self, work: _Work, query: torch.Tensor, lse: torch.Tensor) -> None:
        """Keep the last queries of a prompt, each with its own normaliser, to seed the placement with."""
        queries = query[:, :, -_WINDOW:].float().cpu().numpy()
        lses = lse[:, :, -_WINDOW:].float().cpu().numpy()
        recent = [(queries[:, :, t], lses[:, :, t]) for t in range(queries.shape[2])]
        work.window = [*work.window, *recent][-_WINDOW:]
        work.normaliser = lses[:, :, -1]

    def decode(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        work = self._works[Stream(layer, sequence)]
        stream = work.ready()
        if self.policy.exact(stream.length) or work.normaliser is None:
            if self.witness is not None:
                self.witness(layer, sequence, [np.arange(stream.length)])
            return self.exact(layer, sequence, query, keys, values, scaling, decoding=True)
        if layer == 0:
            self._tidy()
        if work.window:
            self._seed(work, scaling)
        grouped = query.reshape(self.geometry.kv_heads, self.geometry.group, *query.shape[1:])
        sets = self._select(work, grouped[:, :, 0].float().cpu().numpy(), work.normaliser, scaling)
        if self.witness is not None:
            self.witness(layer, sequence, sets)
        selected = sets[0] if len(sets) == 1 else np.unique(np.concatenate(sets))
        with self.trace.span("locate"):
            located = stream.locate(selected)
        own = self.geometry.pack_rows(keys, values)
        out, lse = self._attend(stream, located, grouped, own, scaling, sets, selected)
        work.normaliser = self.policy.observe(work.normaliser, lse)
        cold = len(located.cold)
        self.ledger.step(hot=len(located.hot), cold=cold, cold_bytes=cold * self.geometry.row_bytes)
        with self.trace.span("store"):
            stream.append(own)
        work.behind = partial(_settle, self.trace, stream, selected, located)  # no reference to self: no cycle
        self._behind.append(work)
        return out.flatten(0, 1)

    def _attend(
        self,
        stream: TokenStream,
        located: Selection,
        query: torch.Tensor,
        own: torch.Tensor,
        scaling: float,
        sets: list[Positions],
        selected: Positions,
    ) -> tuple[torch.Tensor, PerHead]:
        """Attention of a query [H, G, 1, d] to what each head selected and to its own row; cold rows last."""
        count, stored = len(selected), len(located.hot) + len(located.cold)
        newest_ranks, cold = np.arange(stored, count), np.arange(len(located.cold))
        attention = attend_rows(self.geometry, query, scaling, count + 1)

        def add(rows: torch.Tensor, index: Positions, ranks: Positions) -> None:
            if len(sets) == 1:
                attention.add(rows, index, ranks)
                return
            for head, chosen in enumerate(sets):
                mine = np.isin(selected[ranks], chosen, assume_unique=True)
                attention.add(rows, index[mine], ranks[mine], head)

        with self.trace.span("attend"):
            attention.add(own, np.zeros(1, np.int64), np.array([count]))
            add(stream.hot_pool.rows, located.hot, located.hot_ranks)
            add(stream.device_tier.rows, located.newest, newest_ranks)
        with self.trace.span("wait for cold rows"):
            cold_rows = located.wait()
        with self.trace.span("attend cold"):
            add(cold_rows, cold, located.cold_ranks)
            return attention.finish()

    def _tidy(self) -> None:
        self._heap.tidy(self.ledger.tiers.hot.bytes + self.ledger.tiers.device.bytes)

    def _select(
        self,
        work: _Work,
        query: npt.NDArray[np.float32],
        normaliser: PerHead,
        scaling: float,
        *,
        count: bool = True,
    ) -> list[Positions]:
        stream = work.stream
        queries = self.policy.queries(query, scaling, normaliser, stream.lowest_exponent)
        with self.trace.span("evaluate"):
            scores = self._evaluator.score(stream, queries, self._catch_up, count=count)
        with self.trace.span("select"):
            return self.policy.select(scores)

    def _seed(self, work: _Work, scaling: float) -> None:
        """Before the first step after a prompt: let its last queries fill the hit-rate table and the hot pool."""
        window, work.window = work.window, []
        sets = [self._select(work, query, normaliser, scaling, count=False) for query, normaliser in window]
        work.stream.seed([np.unique(np.concatenate(each)) for each in sets])

    def _catch_up(self) -> None:
        """Do what was put off behind earlier steps; called while the storage device scores."""
        behind, self._behind = self._behind, []
        for work in behind:
            work.ready()

    def settled_ledger(self) -> Ledger:
        self._catch_up()
        return self.ledger

    def close(self) -> None:
        self._behind, self._works = [], {}
        self.csd.close()


def _settle(trace: Trace, stream: TokenStream, selected: Positions, located: Selection) -> None:
    with trace.span("place"):
        stream.settle(selected, located)
