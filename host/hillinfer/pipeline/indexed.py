"""Choosing by an index in fast memory: no key is looked at, and the storage device scores nothing."""

from __future__ import annotations

import torch

from hillinfer.csd.contract import Stream
from hillinfer.kv.geometry import Geometry
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.choosing import WINDOW, Chooser
from hillinfer.pipeline.trace import Trace
from hillinfer.policies.indexing import Index, IndexingPolicy
from hillinfer.store.token_stream import TokenStream


class Indexed(Chooser):
    """Runs an indexing policy: an index per stream."""

    def __init__(
        self, policy: IndexingPolicy, geometry: Geometry, sequences: int, device: torch.device, trace: Trace
    ) -> None:
        self._policy, self._trace, self._device = policy, trace, device
        self._indices = {
            Stream(layer, sequence): index
            for sequence in range(sequences)
            for layer, index in enumerate(policy.open(geometry, device))
        }
        self._window: dict[Stream, torch.Tensor] = {}  # [H, G, up to WINDOW, d]

    def exact(self, tokens: int) -> bool:
        return self._policy.exact(tokens)

    def read(self, stream: Stream, query: torch.Tensor, keys: torch.Tensor, lse: torch.Tensor) -> None:
        before = self._window.get(stream)
        recent = query[:, :, -WINDOW:].float()
        self._window[stream] = (recent if before is None else torch.cat([before, recent], 2))[:, :, -WINDOW:].clone()
        self._extend(stream, query, keys)

    def stepped(self, stream: Stream, query: torch.Tensor, keys: torch.Tensor, lse: torch.Tensor) -> None:
        self._extend(stream, query, keys)

    def _extend(self, stream: Stream, query: torch.Tensor, keys: torch.Tensor) -> None:
        with self._trace.span("index"):
            self._indices[stream].extend(keys, query)

    def choose(self, stream: TokenStream, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        index = self._settled(stream)
        with self._trace.span("select"):
            return index.select(query.float(), scaling)

    def recall(self, stream: TokenStream, scaling: float) -> list[list[Positions]]:
        window = self._window.pop(stream.id, None)
        recalled = []
        index = self._settled(stream)
        for query in () if window is None else window.unbind(2):
            sets = index.select(query, scaling)
            if sets is None:  # then a layer's others are too
                break
            recalled.append(sets)
        return recalled

    def _settled(self, stream: TokenStream) -> Index:
        """The stream's index, ready to select."""
        index = self._indices[stream.id]
        if index.unsettled:
            with self._trace.span("settle"):
                unpack = stream.geometry.unpack_rows
                index.settle(unpack(rows.to(self._device))[0] for rows in stream.pieces())
        return index

    def nbytes(self, stream: Stream) -> int:
        return self._indices[stream].nbytes
