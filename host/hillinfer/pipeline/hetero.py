"""HeteroCache's engine: parts of the context per KV head on the compute device, all of it in the tiers below.

A prompt goes into the tiers as in the tiered engine (DRAM and the storage device's cold pool), and is attended from
there. When it is over, at the first decoded token, each KV head takes to the device what the policy allows it. Decoding
attends to that alone. A pivot that drifts has its satellites refilled:

    step t, layer l      after attending: the pivot has drifted; which rows are wanted is settled, reading starts
    (all other layers)   the read runs behind their work
    step t + 1, layer l  before attending: the rows are installed, waited for if they have not come

So a refill takes effect exactly one step after the drift was seen, however fast the tiers are.
"""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass

import numpy as np
import psutil
import torch

from hillinfer.config import StoreSettings
from hillinfer.csd.contract import Device, Stream
from hillinfer.csd.registry import open_device
from hillinfer.errors import DeviceError, HillInferError, MemoryBudgetError, SettingError
from hillinfer.kv.copies import KINDS, ScoringCopy
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.row_format import row_format
from hillinfer.pipeline.contract import Engine
from hillinfer.pipeline.heap import Heap
from hillinfer.pipeline.kept_heads import KeptHeads, keep_heads
from hillinfer.pipeline.prefill import attend_stream
from hillinfer.pipeline.refill import Refill, Refiller
from hillinfer.pipeline.retrieval import Retrieval
from hillinfer.pipeline.trace import Trace
from hillinfer.policies.heterocache import HeteroCache
from hillinfer.store.capacity import Capacity
from hillinfer.store.ledger import LowerTiers
from hillinfer.store.token_stream import TokenStream, open_streams

_COPY = KINDS["int8"]
_HOST = torch.device("cpu")


@dataclass
class _Work:
    """A stream in the tiers, the last query of its prompt [H, G, d], and once that is over, what is on the device.

    refill   what was ordered in the last step, to be installed before the next one attends
    """

    stream: TokenStream
    last_query: torch.Tensor | None = None
    kept: KeptHeads | None = None
    refill: Refill | None = None
    counted: int = 0


class HeteroEngine(Engine):
    """Every token is kept in the tiers; a decode step attends to what its heads keep on the device."""

    policy: HeteroCache
    ledger: LowerTiers
    csd: Device

    def __init__(
        self,
        geometry: Geometry,
        policy: HeteroCache,
        settings: StoreSettings,
        *,
        sequences: int,
        max_tokens: int,
        device: torch.device,
        expected: int = 0,
    ) -> None:
        self.geometry, self.policy, self.sequences = geometry, policy, sequences
        self.trace, self.ledger, self._heap = Trace(enabled=settings.trace), LowerTiers(), Heap()
        self._max_tokens, self._device = max_tokens, device
        self._form = row_format(policy.kv_format, geometry.head_dim, geometry.dtype)
        self._layers = policy.heads.layers
        # No tokens are pinned: what a refill will want is not what came last.
        scored = policy.supply == "csd"
        self.capacity = Capacity(geometry, sequences, settings.hot_bytes, None, pinned=lambda _: 0, scored=scored)
        self.capacity.check(expected, self._working_set)
        self.csd = open_device(settings, geometry, max_tokens, self.trace.record)
        try:
            if scored and _COPY.key_format not in self.csd.capabilities.key_formats:
                raise DeviceError(f"the device {self.csd.capabilities.name} cannot score {_COPY.key_format} keys")
            self._refiller = Refiller(geometry, self.ledger, settings.hot_bytes, sequences)
            self._retrieval = Retrieval(policy, self.csd, self._refiller, self.ledger, self.trace)
            names = [*map(Stream._make, itertools.product(range(geometry.layers), range(sequences)))]
            unfitted = _COPY.unfitted if scored else None
            copies: dict[Stream, ScoringCopy] = {} if unfitted is None else dict.fromkeys(names, unfitted)
            places = geometry, self.csd, self.capacity, self.ledger
            opened = open_streams(names, *places, reserve_tokens=max_tokens, copies=copies, device=_HOST)
            self._works = {name: _Work(stream) for name, stream in opened.items()}
        except BaseException:
            self.csd.close()
            raise

    def expect(self, tokens: int) -> None:
        self.policy.check(tokens)
        self._check_memory(tokens)
        self.capacity.check(tokens, self._working_set)
        self.csd.check_room(tokens, self.sequences, scored=self.policy.supply == "csd")

    def _check_memory(self, tokens: int) -> None:
        if self._device.type != "cpu" or not tokens:
            return
        nbytes = int(self.policy.lengths(tokens).sum()) * self.sequences * self._form.row_bytes
        memory = psutil.virtual_memory().total
        if nbytes > memory:
            raise MemoryBudgetError(
                f"heterocache keeps {nbytes / 1e9:.1f} GB of a context of {tokens} tokens on the compute device, and "
                f"this machine has {memory / 1e9:.1f} GB: give a smaller --budget"
            )

    def _working_set(self, tokens: int) -> int:
        """Rows of a stream brought together at once: those of the largest refill."""
        if not self.policy.retrieve:
            return 0
        try:
            lengths = self.policy.lengths(tokens)
        except SettingError:  # asked about a longer context than there is; ``check`` speaks for the real one
            return 0
        satellites = [
            int(lengths[layer, head])
            for layer, roles in enumerate(self._layers)
            for members in roles.clusters.values()
            for head in members
        ]
        return max(satellites, default=0)

    def exact(
        self,
        layer: int,
        sequence: int,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scaling: float,
        *,
        decoding: bool = False,  # this engine decodes by itself
    ) -> torch.Tensor:
        grouped = self.geometry.group_heads(query)
        with self.trace.span("attend"):
            stream = self._works[Stream(layer, sequence)].stream
            out, lse = attend_stream(self.geometry, stream, grouped, keys, values, scaling)
        self.admit(layer, sequence, grouped, keys, values, lse, scaling)
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
        """What is on the device for an earlier prompt is given up: when this one is over, heads choose anew."""
        work = self._works[Stream(layer, sequence)]
        self._give_up(work)
        with self.trace.span("store"):
            work.stream.append_chunk(keys, values)
        work.last_query = query[:, :, -1].clone()
        self._heap.tidy(self.ledger.tiers.hot.bytes + self.ledger.tiers.device.bytes)

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
        if work.kept is None and work.last_query is None:  # the context's very first token
            if self.witness is not None:
                self.witness(layer, sequence, [np.arange(0)])
            return self.exact(layer, sequence, query, keys, values, scaling)
        if work.kept is None:
            work.kept = self._keep(layer, work, scaling)
        kept, grouped = work.kept, self.geometry.group_heads(query)
        refill, work.refill = work.refill, None
        if refill is not None:
            with self.trace.span("refill"):
                self._refiller.install(work.stream, kept, refill)
        if self.witness is not None:
            self.witness(layer, sequence, kept.sets)
        kept.append(keys, values)
        with self.trace.span("attend"):
            out, lse = kept.attend(grouped, scaling)
        if self.policy.retrieve:
            work.refill = self._retrieval.watch(layer, work.stream, kept, grouped, lse, scaling)
        with self.trace.span("store"):
            work.stream.append(self.geometry.pack_rows(keys, values).to(_HOST))
        self._account(work)
        return out.flatten(0, 1)

    def _give_up(self, work: _Work) -> None:
        """Free what is on the device, and what is on its way there."""
        if work.refill is not None:
            self._refiller.abandon(work.refill)
        work.refill = work.kept = None
        self._account(work)

    def _keep(self, layer: int, work: _Work, scaling: float) -> KeptHeads:
        """The prompt is over: bring to the device what the heads keep of it."""
        assert work.last_query is not None
        stream, policy = work.stream, self.policy
        lengths, base = policy.lengths(stream.length)[layer], policy.base(stream.length)
        clusters = self._layers[layer].clusters if policy.retrieve else {}
        if (lengths == stream.length).all():
            clusters = {}  # nothing was left behind
        with self.trace.span("keep"):
            kept = keep_heads(
                self.geometry,
                stream,
                work.last_query,
                scaling,
                lengths=lengths,
                base=base,
                kernel=policy.kernel,
                pivots=list(clusters),
                window=policy.window,
                threshold=policy.drift_threshold,
                form=self._form,
                room=self._max_tokens - stream.length,
            )
        if clusters:  # what the pivots look at is what a refill will want, as far as is known
            stream.seed([monitor.reference.nonzero()[:, 0].cpu().numpy() for monitor in kept.monitors.values()])
        return kept

    def _account(self, work: _Work) -> None:
        """Tell the ledger what this stream holds on the device now."""
        nbytes = 0 if work.kept is None else work.kept.nbytes
        self.ledger.on_device(nbytes - work.counted)
        work.counted = nbytes

    def settled_ledger(self) -> LowerTiers:
        return self.ledger

    def close(self) -> None:
        works, self._works = self._works, {}
        try:
            for work in works.values():
                with contextlib.suppress(HillInferError):  # what nobody will use may have failed to come
                    self._give_up(work)
        finally:
            self.csd.close()
