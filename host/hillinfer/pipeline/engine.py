"""The tiered engine: policy × store × pipeline. Knows queries, keys and values; knows no model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from hillinfer.config import StoreSettings
from hillinfer.csd.contract import Device, Stream
from hillinfer.csd.registry import open_device
from hillinfer.errors import DeviceError
from hillinfer.kv.copies import ScoringCopy
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.keys import ScoringKeys
from hillinfer.pipeline.arrivals import Arrived, arrivals
from hillinfer.pipeline.balancing import open_balance
from hillinfer.pipeline.choosing import Chooser
from hillinfer.pipeline.chosen import Chosen, ChosenSets
from hillinfer.pipeline.contract import Engine, Recorder
from hillinfer.pipeline.evaluate import Evaluator
from hillinfer.pipeline.heap import Heap
from hillinfer.pipeline.indexed import Indexed
from hillinfer.pipeline.near_data import NearData
from hillinfer.pipeline.prefill import attend_stream
from hillinfer.pipeline.trace import Trace
from hillinfer.pipeline.work import Behind, Work
from hillinfer.policies.base import SelectingPolicy
from hillinfer.policies.indexing import IndexingPolicy
from hillinfer.store.capacity import Capacity
from hillinfer.store.copy_choice import CopyChoice
from hillinfer.store.ledger import Ledger
from hillinfer.store.split import Split
from hillinfer.store.token_stream import TokenStream, open_streams


class TieredEngine(Engine):
    """Everything is kept, in three tiers; a step attends to what the policy selects of it.

    sequences    the batch size
    max_tokens   most tokens a sequence may ever have; memory for tables and pools is reserved for it, not taken
    expected     tokens a sequence will have as far as is known: budgets must do for them
    """

    policy: SelectingPolicy | IndexingPolicy
    csd: Device
    recorder: Recorder | None = None
    """Told of every decode step and of what is done behind it."""

    def __init__(
        self,
        geometry: Geometry,
        policy: SelectingPolicy | IndexingPolicy,
        settings: StoreSettings,
        *,
        sequences: int,
        max_tokens: int,
        device: torch.device,
        expected: int = 0,
    ) -> None:
        scored = isinstance(policy, SelectingPolicy)
        self.copy = CopyChoice.of(settings, geometry, sequences, expected) if scored else CopyChoice.int8()
        self.scoring_copy = self.copy.name if scored else None
        geometry = self.copy.shape(geometry)
        self.geometry, self.policy, self.sequences = geometry, policy, sequences
        self.trace = Trace(enabled=settings.trace)
        self.ledger = Ledger()
        self._heap = Heap()
        self._behind = Behind()
        newest = settings.device_bytes
        self.balance = open_balance(settings, geometry, device, policy.attended) if scored else None
        self.capacity = Capacity(
            geometry,
            sequences,
            settings.hot_bytes,
            newest.nbytes if newest else None,
            pinned=policy.attended,
            scored=scored,
            index=partial(policy.dram_bytes, geometry) if isinstance(policy, IndexingPolicy) else None,
            whole=policy.whole_layers(geometry.layers) if isinstance(policy, IndexingPolicy) else frozenset(),
            history=settings.placement == "history",
            split=Split() if self.balance is None else self.balance.split,
        )
        self.capacity.check(expected, self._working_set)  # before memory is reserved
        streams = [*map(Stream._make, itertools.product(range(geometry.layers), range(sequences)))]
        unfitted = self.copy.kind.unfitted if scored else None
        copies: dict[Stream, ScoringCopy] = {} if unfitted is None else dict.fromkeys(streams, unfitted)
        cast = partial(_cast, copies)
        self.csd = open_device(self.copy.device(settings), geometry, max_tokens, self.trace.record, cast)
        try:
            self._chooser = self._open_chooser(device, settings.threads)
            opened = open_streams(
                streams,
                geometry,
                self.csd,
                self.capacity,
                self.ledger,
                reserve_tokens=max_tokens,
                copies=copies,
                device=device,
            )
            self._works = {name: Work(stream) for name, stream in opened.items()}
        except BaseException:
            self.csd.close()
            raise

    def _open_chooser(self, device: torch.device, threads: int) -> Chooser:
        if isinstance(self.policy, IndexingPolicy):
            return Indexed(self.policy, self.geometry, self.sequences, device, self.trace)
        wanted = self.geometry.key_format
        if wanted not in self.csd.capabilities.key_formats:
            raise DeviceError(f"the device {self.csd.capabilities.name} cannot score {wanted} keys")
        evaluator = Evaluator(self.csd, self.ledger, self.trace, self.balance)
        kind, apart, meanwhile = self.copy.kind, self.balance is not None, self._behind.catch_up
        return NearData(
            self.policy, self.geometry, kind, evaluator, self.trace, meanwhile, threads=threads, apart=apart
        )

    def expect(self, tokens: int) -> None:
        self.policy.check(tokens)
        self.capacity.check(tokens, self._working_set)
        self.copy.check(self.geometry, self.sequences, tokens)
        self.csd.check_room(tokens, self.capacity.sequences, scored=isinstance(self.policy, SelectingPolicy))

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
        return self._exact(Stream(layer, sequence), query, keys, values, scaling, decoding=decoding, count=False)

    def _exact(
        self,
        stream_id: Stream,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
        *,
        decoding: bool,
        count: bool,
    ) -> torch.Tensor:
        """``count``: the chooser was asked, and said everything; so the ledger counts the rows as selected."""
        work = self._works[stream_id]
        stream, work.ahead = work.ready(), None
        grouped = self.geometry.group_heads(query)
        out, lse = attend_stream(self.geometry, stream, grouped, keys, values, scaling, count=count)
        if decoding:
            with self.trace.span("store"):
                stream.append(self.geometry.pack_rows(keys, values))
            if count:
                self._chooser.stepped(stream_id, grouped, keys, lse[:, :, 0].float())
                self._account(work)
            else:
                self._read(work, grouped, keys, lse)
        else:
            self._admit(work, grouped, keys, values, lse)
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
        work.ready()
        work.ahead = None
        self._admit(work, query, keys, values, lse)

    def _admit(
        self, work: Work, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, lse: torch.Tensor
    ) -> None:
        with self.trace.span("store"):
            work.stream.append_chunk(keys, values)
        self._read(work, query, keys, lse)

    def _read(self, work: Work, query: torch.Tensor, keys: torch.Tensor, lse: torch.Tensor) -> None:
        """Let the chooser see tokens that were attended exactly."""
        self._chooser.read(work.stream.id, query, keys, lse)
        work.fresh = True
        self._account(work)
        self._tidy()

    def decode(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        return self.begin(layer, sequence, query, keys, values, scaling)()

    def begin(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> Callable[[], torch.Tensor]:
        work = self._works[Stream(layer, sequence)]
        stream, ahead = work.ready(), work.ahead
        grouped = self.geometry.group_heads(query)
        if layer == 0:
            self._tidy()
            self._behind.catch_up()
            if self.balance is not None and sequence == 0:
                self.balance.stepped(self.csd.counters)
        arrived, work.arrived = work.arrived, None
        if arrived is None and query.device.type != "cpu":  # not announced
            [arrived] = arrivals(self.geometry, query[None], keys[None], values[None])
        chosen: Chosen | None = None
        selects = not self._chooser.exact(stream.length)
        if selects and ahead is not None and ahead.length == stream.length:
            chosen = ahead
        elif selects:
            self._recall(work, scaling)
            chosen = None if arrived else self._chooser.at_once(stream, grouped, keys, values, scaling)
            if chosen is None:
                asked = arrived.query if arrived is not None and self._chooser.asks_in_dram else grouped[:, :, 0]
                chosen = self._choose(work, asked, scaling)
        work.ahead = None
        if self.witness is not None:
            self.witness(layer, sequence, [np.arange(stream.length)] if chosen is None else chosen.by_head())
        if self.recorder is not None:
            self.recorder.chose(stream, chosen)
        if chosen is None:
            out = self._exact(stream.id, query, keys, values, scaling, decoding=True, count=selects)
            return lambda: out
        return partial(self._end, work, chosen, arrived, grouped, keys, values, scaling)

    def _end(
        self,
        work: Work,
        chosen: Chosen,
        arrived: Arrived | None,
        grouped: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
    ) -> torch.Tensor:
        """Attend to what was chosen, and to the step's own token; then it is cached."""
        stream, own = work.stream, None
        if not chosen.has_row:
            own = self.geometry.pack_rows(keys, values) if arrived is None else arrived.own
        out, lse = chosen.attend(stream, grouped, own, scaling, self.trace, self._behind.catch_up)
        cold = chosen.cold_rows
        if self.balance is not None:
            self.balance.spent(cold, chosen.spent)
        self.ledger.step(hot=chosen.hot_rows, cold=cold, cold_bytes=cold * self.geometry.row_bytes)
        with self.trace.span("store"):
            chosen.store(stream, own, None if arrived is None else arrived.row)
        self._chooser.stepped(stream.id, grouped, keys, lse)
        self._account(work)
        self._behind.put(work, partial(_settle, self.trace, self.ledger, self.recorder, stream, chosen))
        return out.flatten(0, 1)

    def announce(self, layer: int, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> None:
        if query.device.type != "cpu":
            for sequence, arrived in enumerate(arrivals(self.geometry, query, keys, values)):
                self._works[Stream(layer, sequence)].arrived = arrived

    def foretell(self, layer: int, sequence: int, query: torch.Tensor, scaling: float) -> None:
        """Starts to read what the coming step is likely to attend to; a policy that predicts then attends to that."""
        work = self._works[Stream(layer, sequence)]
        if self._chooser.exact(work.ready().length):
            return
        grouped = self.geometry.group_heads(query)
        if isinstance(self.policy, SelectingPolicy):
            self._recall(work, scaling)
            with self.trace.span("look ahead"):
                guessed = self._chooser.guess(work.stream, grouped[:, :, 0], scaling)
                if guessed is not None:
                    work.stream.stage(guessed)
            return
        with self.trace.span("foretell"):
            work.ahead = self._choose(work, grouped[:, :, 0], scaling)

    def _choose(self, work: Work, query: torch.Tensor, scaling: float) -> Chosen | None:
        """What a query [H, G, d] attends to, its cold rows on their way; None: everything."""
        self._recall(work, scaling)
        stream = work.stream
        sets = self._chooser.choose(stream, query, scaling)
        if sets is None:
            return None
        with self.trace.span("locate"):
            return ChosenSets.of(stream, sets)

    def _recall(self, work: Work, scaling: float) -> None:
        """Before the first step after a prompt its last queries fill the hit-rate table and the pool."""
        if work.fresh:
            work.fresh = False
            recalled = self._chooser.recall(work.stream, scaling)
            if recalled:
                work.stream.seed([np.unique(np.concatenate(sets)) for sets in recalled])

    def _account(self, work: Work) -> None:
        """Tell the ledger what the stream's index takes now."""
        nbytes = self._chooser.nbytes(work.stream.id)
        if nbytes != work.index:
            in_dram = isinstance(self.policy, IndexingPolicy) and self.policy.in_dram
            self.ledger.change(**{"hot" if in_dram else "device": nbytes - work.index})
            work.index = nbytes

    def _tidy(self) -> None:
        self._heap.tidy(self.ledger.tiers.hot.bytes + self.ledger.tiers.device.bytes)

    @property
    def balanced(self) -> tuple[float | None, float | None]:
        return (None, None) if self.balance is None else (self.balance.host_share, self.balance.error)

    def settled_ledger(self) -> Ledger:
        self._behind.catch_up()
        self.ledger.tiers.scoring.set(self.csd.counters.scoring_bytes)
        return self.ledger

    def close(self) -> None:
        self._behind, self._works = Behind(), {}
        self.csd.close()


def _cast(copies: dict[Stream, ScoringCopy], stream: Stream, keys: torch.Tensor) -> ScoringKeys:
    """Scoring keys of keys [H, n, d], for a device that has to make them again."""
    return copies[stream].cast(keys)


def _settle(trace: Trace, ledger: Ledger, recorder: Recorder | None, stream: TokenStream, chosen: Chosen) -> None:
    before = ledger.moved_rows
    with trace.span("place"):
        chosen.settle(stream)
    if recorder is not None:
        recorder.settled(stream.id, ledger.moved_rows - before)
