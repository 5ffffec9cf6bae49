"""Choosing by scores that are made where the keys lie, on both sides at once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch

from hillinfer import _native
from hillinfer.csd.contract import Stream
from hillinfer.kv.device_copies import Arriving
from hillinfer.kv.selection import Positions
from hillinfer.pipeline.at_once import ChosenAtOnce
from hillinfer.pipeline.choosing import WINDOW, Chooser
from hillinfer.pipeline.evaluate import Evaluator
from hillinfer.pipeline.trace import Trace
from hillinfer.policies.base import PerHead, SelectingPolicy
from hillinfer.store.token_stream import TokenStream

_Asked = tuple[npt.NDArray[np.float32], PerHead]
"""A query float32 [H, G, d] and its log-normaliser."""


class NearData(Chooser):
    """Runs a selecting policy, and remembers its normalisers.

    meanwhile   called when the host has done its share of the scoring and would only wait for the device
    threads     that share the work of a step, the caller's included
    apart       each side is to score its own tiles, also where one of them could score all in one call
    """

    asks_in_dram = True

    def __init__(
        self,
        policy: SelectingPolicy,
        evaluator: Evaluator,
        trace: Trace,
        meanwhile: Callable[[], None],
        *,
        threads: int = 1,
        apart: bool = False,
    ) -> None:
        self._apart = apart
        self._threads = _native.ThreadPool(threads) if threads > 1 else None
        self._policy, self._evaluator, self._trace, self._meanwhile = policy, evaluator, trace, meanwhile
        self._normaliser: dict[Stream, PerHead] = {}
        self._lse: dict[Stream, Arriving] = {}  # of the last step, on its way from where it was attended
        self._window: defaultdict[Stream, list[_Asked]] = defaultdict(list)

    def exact(self, tokens: int) -> bool:
        return self._policy.exact(tokens)

    def read(self, stream: Stream, query: torch.Tensor, keys: torch.Tensor, lse: torch.Tensor) -> None:
        queries = query[:, :, -WINDOW:].float().cpu().numpy()
        lses = lse[:, :, -WINDOW:].float().cpu().numpy()
        recent = [(queries[:, :, t], lses[:, :, t]) for t in range(queries.shape[2])]
        self._window[stream] = [*self._window[stream], *recent][-WINDOW:]
        self._normaliser[stream] = lses[:, :, -1]
        self._lse.pop(stream, None)

    def stepped(self, stream: Stream, query: torch.Tensor, keys: torch.Tensor, lse: torch.Tensor) -> None:
        self._lse[stream] = Arriving(lse)

    def _normaliser_of(self, stream: Stream) -> PerHead | None:
        """The stream's normaliser, its last step observed; None before anything was attended."""
        lse = self._lse.pop(stream, None)
        if lse is not None:
            self._normaliser[stream] = self._policy.observe(self._normaliser.get(stream), lse.wait().numpy())
        return self._normaliser.get(stream)

    def choose(self, stream: TokenStream, query: torch.Tensor, scaling: float) -> list[Positions] | None:
        normaliser = self._normaliser_of(stream.id)
        if normaliser is None:  # nothing was attended yet
            return None
        return self._select(stream, (query.float().cpu().numpy(), normaliser), scaling)

    def at_once(
        self, stream: TokenStream, query: torch.Tensor, own: torch.Tensor, scaling: float
    ) -> ChosenAtOnce | None:
        normaliser, count = self._normaliser_of(stream.id), self._policy.best_of(stream.length)
        if self._apart or normaliser is None or count is None or query.device.type != "cpu" or not stream.read_in_place:
            return None
        keys = stream.keys_in_memory()
        if keys is None:
            return None
        query = query.float().contiguous()
        start = time.perf_counter()
        queries = self._policy.queries(query.numpy(), scaling, normaliser, stream.lowest_exponent)
        chosen = ChosenAtOnce(stream, keys, queries[0], query, own, scaling, count, self._threads, self._trace)
        self._evaluator.scored_at_once(stream, chosen.scored_at - start)
        return chosen

    def guess(self, stream: TokenStream, query: torch.Tensor, scaling: float) -> Positions | None:
        normaliser = self._normaliser_of(stream.id)
        if normaliser is None:
            return None
        sets = self._select(stream, (query.float().cpu().numpy(), normaliser), scaling, count=False)
        return sets[0] if len(sets) == 1 else np.unique(np.concatenate(sets))

    def recall(self, stream: TokenStream, scaling: float) -> list[list[Positions]]:
        return [self._select(stream, asked, scaling, count=False) for asked in self._window.pop(stream.id, ())]

    def nbytes(self, stream: Stream) -> int:
        return 0

    def _select(self, stream: TokenStream, asked: _Asked, scaling: float, *, count: bool = True) -> list[Positions]:
        queries = self._policy.queries(asked[0], scaling, asked[1], stream.lowest_exponent)
        with self._trace.span("evaluate"):
            scores = self._evaluator.score(stream, queries, self._meanwhile, count=count)
        with self._trace.span("select"):
            return self._policy.select(scores)
